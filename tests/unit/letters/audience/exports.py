# ruff: noqa: E501
"""Exports that are known: their own headers, a few people of each kind, and who should come of it.

`active`, `gone` (unsubscribed), `bounced` and `out` (left out) name people by the part before the @-sign.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    product: str
    text: str
    active: str = ""
    gone: str = ""
    bounced: str = ""
    out: int = 0
    file: str = "people.csv"
    says_so: bool = True


_HEAD = (
    "Email Address,First Name,Last Name,Company,MEMBER_RATING,OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,CONFIRM_IP,LATITUDE,"
    "LONGITUDE,GMTOFF,DSTOFF,TIMEZONE,CC,REGION,{}LEID,EUID,NOTES,TAGS\n"
)
_PERSON = (
    '{0}@example.org,Ana,Li,,2,2021-03-01 10:00:00,,2021-03-01 10:01:00,,,,,,,US,NY,{1}123,ab12,,"""vip"""\n'
)
SUBSCRIBED = _HEAD.format("LAST_CHANGED,") + "".join(
    _PERSON.format(one, "2024-01-01 00:00:00,") for one in ("ana", "bo")
)
UNSUBSCRIBED = _HEAD.format(
    "UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_REASON_OTHER,"
) + _PERSON.format("cy", "2024-02-02 09:00:00,Spring,1,NORMAL,,")
CLEANED = _HEAD.format("CLEAN_TIME,CLEAN_CAMPAIGN_TITLE,CLEAN_CAMPAIGN_ID,") + _PERSON.format(
    "di", "2024-02-02 09:00:00,Spring,1,"
)

KNOWN = [
    Known(
        "Mailchimp: subscribed",
        SUBSCRIBED,
        active="ana bo",
        file="subscribed_email_audience_export_1a2b3c.csv",
    ),
    Known(
        "Mailchimp: older, saved twice",
        SUBSCRIBED,
        active="ana bo",
        file="subscribed_members_export_1a2b3c (1).csv",
    ),
    Known(
        "Mailchimp: of a French account",
        SUBSCRIBED.replace("Email Address,First Name,Last Name", "Adresse e-mail,Prénom,Nom"),
        active="ana bo",
        file="subscribed_email_audience_export_1a2b3c.csv",
    ),
    Known(
        "Mailchimp: unsubscribed",
        UNSUBSCRIBED,
        gone="cy",
        file="unsubscribed_email_audience_export_1a2b3c.csv",
    ),
    Known("Mailchimp: cleaned", CLEANED, bounced="di", file="cleaned_email_audience_export_1a2b3c.csv"),
    Known(
        "Mailchimp: non-subscribed", SUBSCRIBED, out=2, file="nonsubscribed_email_audience_export_1a2b3c.csv"
    ),
    Known(
        "Ghost",
        "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,deleted_at,labels,tiers\n"
        "1,ana@example.org,Ana,,true,false,,2024-01-01,,,\n2,bo@example.org,Bo,,false,false,,2024-01-01,,,\n"
        "3,cy@example.org,Cy,,true,false,,2024-01-01,2024-05-05,,\n",
        active="ana",
        gone="bo cy",
    ),
    Known(
        "Substack",
        "email,active_subscription,expiry,plan,email_disabled,created_at,first_payment_at\n"
        "ana@example.org,false,,other,false,2024-01-01T00:00:00.000Z,\n"
        "bo@example.org,true,2025-01-01T00:00:00.000Z,yearly,true,2024-01-01T00:00:00.000Z,\n",
        active="ana",
        gone="bo",
    ),
    Known(
        "Shopify",
        "Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Default Address Company,Default Address Address1,"
        "Default Address Address2,Default Address City,Default Address Province Code,Default Address Country Code,"
        "Default Address Zip,Default Address Phone,Phone,Accepts SMS Marketing,Total Spent,Total Orders,Note,Tax Exempt,Tags\n"
        "'1,Ana,Li,ana@example.org,yes,,,,,,US,,,,no,0.00,0,,no,\n'2,Bo,,bo@example.org,no,,,,,,US,,,,yes,0.00,0,,no,\n",
        active="ana",
        gone="bo",
    ),
    Known(
        "Squarespace",
        "Email,First Name,Last Name,Order Count,Last Order Date,Total Spent,Member Since,Subscriber Since,Subscriber Source,"
        "Tags,Mailing Lists,Member Areas,Has Account,Customer Since,Accepts Marketing\n"
        'ana@example.org,,,0,,,,"June 10, 2024 at 8:43:01 AM PDT",Organic,,News,,false,,true\n'
        "bo@example.org,,,1,,,,,,,,,false,,false\n",
        active="ana",
        out=1,
    ),
    Known(
        "beehiiv",
        "email,First Name,Last Name,status,tier,created_at,stripe_customer_id,Free Tier,Premium Tier,unsubscribed_at\n"
        "ana@example.org,Ana,,active,free,2023-03-24 10:23:10 UTC,,Yes,No,\n"
        "bo@example.org,,,inactive,free,2023-03-24 10:23:10 UTC,,Yes,No,\n"
        "cy@example.org,,,pending,free,2023-03-24 10:23:10 UTC,,Yes,No,\n"
        "di@example.org,,,active,premium,2023-03-24 10:23:10 UTC,cus_1,No,Yes,2024-03-13 11:33:53 UTC\n",
        active="ana",
        gone="bo di",
        out=1,
    ),
    Known(
        "CiviCRM",
        "Contact ID,Contact Type,Do Not Email,Do Not Phone,Do Not Mail,Do Not Sms,Do Not Trade,"
        "No Bulk Emails (User Opt Out),First Name,Birth Date,Deceased,Email\n"
        "1,Individual,,1,1,1,,,Ana,1980-01-01,No,ana@example.org\n2,Individual,1,,,,,,Bo,,,bo@example.org\n"
        "3,Individual,,,,,,1,Cy,,,cy@example.org\n4,Individual,,,,,,,Di,,Yes,di@example.org\n",
        active="ana",
        gone="bo cy di",
        says_so=False,
    ),
    Known(
        "mailout",
        "email,status,from_name,bounce_type,bounce_subtype,lists,ocd_ids,city\n"
        "ana@example.org,active,,,,news,,Lima\nbo@example.org,unsubscribed,,,,,,\n"
        "cy@example.org,bounced,,Permanent,General,,,\n",
        active="ana",
        gone="bo",
        bounced="cy",
    ),
]
