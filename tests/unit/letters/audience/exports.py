# ruff: noqa: E501
"""Exports of newsletter services: their own headers, a few people of each kind, and who should come of it.

`active`, `gone` (unsubscribed), `bounced` and `out` (left out) name people by the part before the @-sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Export:
    product: str
    text: str
    active: str = ""
    gone: str = ""
    bounced: str = ""
    out: int = 0
    encoding: str = "utf-8"
    file: str = "people.csv"
    fields: dict[str, str] = field(default_factory=dict)  # some header → field that must be recognised


MAILCHIMP = (
    "Email Address,First Name,Last Name,Address,Phone Number,Birthday,MEMBER_RATING,OPTIN_TIME,OPTIN_IP,"
    "CONFIRM_TIME,CONFIRM_IP,LATITUDE,LONGITUDE,GMTOFF,DSTOFF,TIMEZONE,CC,REGION,LAST_CHANGED,LEID,EUID,NOTES,TAGS"
)
MAILCHIMP_LEFT = MAILCHIMP.replace(
    "LEID", "UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_REASON_OTHER,LEID"
)
MAILCHIMP_CLEANED = MAILCHIMP.replace("LEID", "CLEAN_TIME,CLEAN_CAMPAIGN_TITLE,CLEAN_CAMPAIGN_ID,LEID")
_PERSON = (
    '{0}@example.org,Ana,Li,"1 Elm St, Town, ST 12345",,,2,"2021-03-01 10:00:00",,"2021-03-01 10:01:00",192.0.2.1'
    ',,,,,,US,NY,"2024-01-01 00:00:00",'
)

SERVICES = [
    Export(
        "Mailchimp: subscribed",
        f'{MAILCHIMP}\n{_PERSON.format("ana")}123,ab12,,"""vip"",""news"""\n{_PERSON.format("bo")}124,ab13,,\n',
        active="ana bo",
        file="subscribed_members_export_1a2b3c.csv",
        fields={"Email Address": "email", "First Name": "first_name"},
    ),
    Export(
        "Mailchimp: unsubscribed",
        f'{MAILCHIMP_LEFT}\n{_PERSON.format("ana")}"2024-02-02 09:00:00",Spring,c1,NORMAL,,123,ab12,,\n'
        f"{_PERSON.format('bo')},,,,,124,ab13,,\n",
        gone="ana bo",
        fields={"UNSUB_TIME": "everybody_unsubscribed"},
    ),
    Export(
        "Mailchimp: unsubscribed, with merge fields of the same name",
        '"Email Address",Name,Country,UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,'
        "UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_REASON_OTHER,MEMBER_RATING\n"
        "ana@example.org,Ana,US,,,2024-02-02 09:00:00,Spring,1,NORMAL,,2\n",
        gone="ana",
    ),
    Export(
        "Mailchimp: cleaned",
        f'{MAILCHIMP_CLEANED}\n{_PERSON.format("ana")}"2024-02-02 09:00:00",Spring,c1,123,ab12,,\n',
        bounced="ana",
    ),
    Export(
        "Mailchimp: nothing but the name of the file tells",
        "Email Address,First Name\nana@example.org,Ana\n",
        gone="ana",
        file="unsubscribed_members_export_1a2b3c.csv",
    ),
    Export(
        "Mailchimp: nonsubscribed",
        "Email Address,First Name\nana@example.org,Ana\n",
        out=1,
        file="nonsubscribed_email_audience_export_1a2b.csv",
    ),
    Export(
        "Mailchimp: contacts table",
        "Email Address,First Name,Last Name,Email Marketing,Email Marketing Status,Tags\n"
        "ana@example.org,Ana,Li,Subscribed,Subscribed,\nbo@example.org,,,Unsubscribed,Unsubscribed,\n"
        "cy@example.org,,,Non-subscribed,Non-subscribed,\ndi@example.org,,,Cleaned,Cleaned,\n",
        active="ana",
        gone="bo",
        bounced="di",
        out=1,
    ),
    Export(
        "Mailchimp: archived",
        "Email Address,Status\nana@example.org,archived\nbo@example.org,subscribed\ncy@example.org,pending\n"
        "di@example.org,transactional\n",
        active="bo",
        gone="ana",
        out=2,
    ),
    Export(
        "listmonk: subscribers",
        "uuid,email,name,attributes,status,created_at,updated_at\n"
        '1f,ana@example.org,Ana,"{""city"": ""Lima""}",enabled,2024-01-01T00:00:00Z,2024-01-01T00:00:00Z\n'
        "2f,bo@example.org,Bo,{},disabled,,\n3f,cy@example.org,Cy,{},blocklisted,,\n",
        active="ana",
        gone="bo cy",
    ),
    Export(
        "listmonk: one list",
        "uuid,email,name,attributes,status,subscription_status,created_at,updated_at\n"
        "1f,ana@example.org,Ana,{},enabled,confirmed,,\n2f,bo@example.org,Bo,{},enabled,unconfirmed,,\n"
        "3f,cy@example.org,Cy,{},enabled,unsubscribed,,\n",
        active="ana",
        gone="cy",
        out=1,
    ),
    Export(
        "Ghost: members",
        "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,deleted_at,"
        "labels,tiers\n1,ana@example.org,Ana,,true,false,,2024-01-01,,,\n2,bo@example.org,Bo,,false,false,,,,,\n"
        "3,cy@example.org,Cy,,true,false,,,2024-05-05,,\n",
        active="ana",
        gone="bo cy",
        fields={"subscribed_to_emails": "opted_in"},
    ),
    Export(
        "Substack: email list",
        "email,active_subscription,expiry,plan,email_disabled,created_at,first_payment_at\n"
        "ana@example.org,false,,other,false,2024-01-01T00:00:00.000Z,\n"
        "bo@example.org,true,2025-01-01T00:00:00.000Z,yearly,true,,\n",
        active="ana",
        gone="bo",
        fields={"email_disabled": "opted_out"},
    ),
    Export(
        "Substack: subscriber dashboard",
        "Email,Name,Stripe plan,Cancel date,Start date,Paid upgrade date,Emails opened (6mo),Unsubscribed at\n"
        "ana@example.org,Ana,Free,,2024-01-01,,4,\nbo@example.org,Bo,Monthly,,2024-01-01,,0,2024-06-01\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Brevo: contacts",
        "CONTACT ID;EMAIL;LASTNAME;FIRSTNAME;SMS;DOUBLE_OPT-IN;EMAIL_BLACKLISTED;SMS_BLACKLISTED;ADDED_TIME\n"
        "1;ana@example.org;Li;Ana;;2;0;1;01-02-2024\n2;bo@example.org;;;;1;1;0;\n",
        active="ana",
        gone="bo",
        fields={"EMAIL_BLACKLISTED": "opted_out", "FIRSTNAME": "first_name"},
    ),
    Export(
        "Brevo: with words",
        "EMAIL,FIRSTNAME,EMAIL_BLACKLISTED\nana@example.org,Ana,No\nbo@example.org,Bo,Yes\n"
        "cy@example.org,Cy,TRUE\ndi@example.org,Di,FALSE\n",
        active="ana di",
        gone="bo cy",
    ),
    Export(
        "Brevo: blocklisted contacts",
        "EMAIL,BLOCKLISTED,UNSUBSCRIBE_REASON\nana@example.org,,\nbo@example.org,,too many\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Kit: subscribers",
        "id,first_name,email,state,created_at,Tags\n1,Ana,ana@example.org,active,2024-01-01,\n"
        "2,Bo,bo@example.org,cancelled,,\n3,Cy,cy@example.org,bounced,,\n4,Di,di@example.org,complained,,\n"
        "5,Ed,ed@example.org,inactive,,\n",
        active="ana",
        gone="bo di ed",
        bounced="cy",
        fields={"state": "status"},
    ),
    Export(
        "Kit: with addresses of people",
        "Email,First name,Status,State,Country\nana@example.org,Ana,Confirmed,OK,US\nbo@example.org,Bo,Unconfirmed,NY,US\n",
        active="ana",
        out=1,
    ),
    Export(
        "ActiveCampaign: contacts",
        'Email,"First Name","Last Name",Phone,Organization,Tags,"IP Address","Date Created",Status,List\n'
        "ana@example.org,Ana,Li,,,,192.0.2.1,2024-01-01,Active,Main\nbo@example.org,,,,,,,,Unsubscribed,Main\n"
        "cy@example.org,,,,,,,,Bounced,Main\ndi@example.org,,,,,,,,Unconfirmed,Main\n",
        active="ana",
        gone="bo",
        bounced="cy",
        out=1,
    ),
    Export(
        "ActiveCampaign: when somebody left",
        "Email,First Name,Subscribed Date,Unsubscribed Date,Unsubscribe Reason\n"
        "ana@example.org,Ana,2024-01-01,0000-00-00 00:00:00,\nbo@example.org,Bo,2024-01-01,2024-03-01 10:00:00,\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "MailerLite: subscribers",
        "Subscriber,Name,Last name,Status,Subscribed,Location,Sent,Opens,Clicks,Unsubscribed\n"
        "ana@example.org,Ana,Li,Active,2024-01-01 10:00:00,,4,2,0,\n"
        "bo@example.org,Bo,,Unsubscribed,2024-01-01 10:00:00,,4,2,0,2024-02-01\n"
        "cy@example.org,Cy,,Junk,2024-01-01 10:00:00,,4,2,0,\n"
        "di@example.org,Di,,Unconfirmed,2024-01-01 10:00:00,,4,2,0,\n",
        active="ana",
        gone="bo cy",
        out=1,
        fields={"Subscriber": "email"},
    ),
    Export(
        "MailerLite classic",
        "Email,Name,Type,Date subscribed\nana@example.org,Ana,active,2024-01-01\nbo@example.org,Bo,unsubscribed,\n"
        "cy@example.org,Cy,bounced,\n",
        active="ana",
        gone="bo",
        bounced="cy",
    ),
    Export(
        "beehiiv: subscribers",
        "Email,Status,Tier,Created At,UTM Source,UTM Medium,UTM Campaign,Referral Code,Unsubscribed At\n"
        "ana@example.org,active,free,2024-01-01,,,,abc,\nbo@example.org,inactive,free,2024-01-01,,,,abd,2024-02-02\n"
        "cy@example.org,pending,free,,,,,,\ndi@example.org,invalid,free,,,,,,\n",
        active="ana",
        gone="bo",
        bounced="di",
        out=1,
    ),
    Export(
        "Buttondown: subscribers",
        "id,email,notes,metadata,tags,referrer_url,type,source,creation_date,unsubscription_date\n"
        "1,ana@example.org,,{},,,regular,import,2024-01-01,\n2,bo@example.org,,{},,,unsubscribed,,,2024-02-02\n"
        "3,cy@example.org,,{},,,unactivated,,,\n4,di@example.org,,{},,,undeliverable,,,\n"
        "5,ed@example.org,,{},,,premium,,,\n6,fy@example.org,,{},,,removed,,,\n",
        active="ana ed",
        gone="bo fy",
        bounced="di",
        out=1,
    ),
]
