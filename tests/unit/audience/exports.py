"""Exports as other products write them: their own headers, a few people of each kind, and who should come of it.

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

EXPORTS = [
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
    Export(
        "Shopify: customers",
        "Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Default Address Company,"
        "Default Address Country Code,Phone,Accepts SMS Marketing,Total Spent,Total Orders,Note,Tax Exempt,Tags\n"
        "'1,Ana,Li,ana@example.org,yes,,US,,no,0.00,0,,no,\n'2,Bo,,bo@example.org,no,,US,,yes,0.00,0,,no,\n",
        active="ana",
        gone="bo",
        fields={"Accepts Email Marketing": "opted_in"},
    ),
    Export(
        "Shopify: as it was before",
        "First Name,Last Name,Email,Company,Accepts Marketing,Total Spent,Tags\n"
        "Ana,Li,ana@example.org,,yes,0.00,\nBo,,bo@example.org,,no,0.00,\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Shopify: in German",
        "Vorname,Nachname,E-Mail,Akzeptiert E-Mail-Marketing\nAna,Li,ana@example.org,ja\nBo,,bo@example.org,nein\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Squarespace: mailing list",
        "Email Address,First Name,Last Name,Subscriber Source,Subscriber Since\n"
        "ana@example.org,Ana,Li,Newsletter Block,2024-01-01\n",
        active="ana",
    ),
    Export(
        "Squarespace: profiles",
        "Email,First Name,Last Name,Accepts Marketing,Mailing Lists,Tags,Created On,Order Count\n"
        "ana@example.org,Ana,Li,true,News,,2024-01-01,1\nbo@example.org,Bo,,false,,,2024-01-01,0\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Google Contacts",
        "First Name,Middle Name,Last Name,Nickname,Labels,E-mail 1 - Label,E-mail 1 - Value,E-mail 2 - Label,"
        "E-mail 2 - Value,Phone 1 - Value\nAna,,Li,,* myContacts,* Home,ana@example.org ::: ana2@example.org,Work,"
        "x@example.org,\nBo,,,,* myContacts,,,,,+1 555\n",
        active="ana",
        out=1,
        fields={"E-mail 1 - Value": "email"},
    ),
    Export(
        "Google Contacts: as it was before",
        "Name,Given Name,Additional Name,Family Name,Group Membership,E-mail 1 - Type,E-mail 1 - Value\n"
        "Ana Li,Ana,,Li,* myContacts,* ,ana@example.org\n",
        active="ana",
        fields={"Name": "name", "Given Name": "first_name", "Family Name": "last_name"},
    ),
    Export(
        "Google Forms: English",
        "Timestamp,Email Address,Your name,Would you like to receive our newsletter?\n"
        '2024/01/01 10:00:00 AM GMT,ana@example.org,Ana,"Yes, please"\n'
        "2024/01/01 10:00:00 AM GMT,bo@example.org,Bo,No\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Google Forms: Russian",
        "Отметка времени,Адрес электронной почты,Ваше имя,Получать рассылку?\n"
        "01.02.2024 10:00:00,ana@example.org,Анна,Да\n01.02.2024 10:00:00,bo@example.org,Борис,Нет\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Google Forms: Portuguese",
        "Carimbo de data/hora,Endereço de e-mail,Nome completo\n01/02/2024 10:00:00,ana@example.org,Ana Conceição\n",
        active="ana",
    ),
    Export(
        "Google Forms: German",
        "Zeitstempel,E-Mail-Adresse,Ihr Name\n01.02.2024 10:00:00,ana@example.org,Änne\n",
        active="ana",
    ),
    Export(
        "Google Forms: Spanish",
        "Marca temporal,Dirección de correo electrónico,Nombre\n01/02/2024 10:00:00,ana@example.org,Ana\n",
        active="ana",
    ),
    Export(
        "Google Forms: French",
        "Horodateur,Adresse e-mail,Prénom,Nom\n01/02/2024 10:00:00,ana@example.org,Ana,Li\n",
        active="ana",
    ),
    Export(
        "Google Forms: username",
        "Timestamp,Username,Question\n2024/01/01,ana@example.org,hello\n",
        active="ana",
        fields={"Username": "email"},
    ),
    Export(
        "LinkedIn: connections",
        'Notes:\n"When exporting your connection data, you may notice that some of the email addresses are missing.'
        ' You will only see email addresses for connections who allow it."\n\n'
        "First Name,Last Name,URL,Email Address,Company,Position,Connected On\n"
        "Ana,Li,https://example.com/in/ana,ana@example.org,Acme,CEO,01 Jan 2024\n"
        "Bo,Xu,https://example.com/in/bo,,Acme,CTO,01 Jan 2024\n",
        active="ana",
        out=1,
        fields={"Email Address": "email"},
    ),
    Export(
        "A Russian service, saved by Excel",
        "Имя;Электронная почта;Статус\nАнна;ana@example.org;Активен\nБорис;bo@example.org;Отписан\n"
        "Вера;cy@example.org;Не подтверждён\nГлеб;di@example.org;Недоставлен\n",
        active="ana",
        gone="bo",
        bounced="di",
        out=1,
        encoding="cp1251",
    ),
    Export(
        "A Portuguese service",
        "Nome;E-mail;Situação\nAna;ana@example.org;Ativo\nBo;bo@example.org;Descadastrado\n"
        "Cy;cy@example.org;Não confirmado\n",
        active="ana",
        gone="bo",
        out=1,
        encoding="cp1252",
    ),
    Export(
        "A German service",
        "Vorname;Nachname;E-Mail-Adresse;Status;Abgemeldet am\nJürgen;Müller;ana@example.org;Bestätigt;\n"
        "Bo;;bo@example.org;Bestätigt;01.02.2024\nCy;;cy@example.org;Abgemeldet;\ndi;;di@example.org;Unbestätigt;\n",
        active="ana",
        gone="bo cy",
        out=1,
        encoding="cp1252",
    ),
    Export(
        "A Spanish service",
        "nombre,apellidos,correo electrónico,estado\nAna,Núñez,ana@example.org,activo\n"
        "Bo,,bo@example.org,dado de baja\nCy,,cy@example.org,pendiente\nDi,,di@example.org,rebotado\n",
        active="ana",
        gone="bo",
        bounced="di",
        out=1,
    ),
    Export(
        "A French service",
        "Prénom;Nom;Courriel;Statut\nHélène;Lefèvre;ana@example.org;Abonné\nBo;;bo@example.org;Désabonné\n"
        "Cy;;cy@example.org;En attente\n",
        active="ana",
        gone="bo",
        out=1,
        encoding="cp1252",
    ),
    Export(
        "Spanish provinces are no status",
        "correo,estado\nana@example.org,Jalisco\nbo@example.org,Oaxaca\n",
        active="ana bo",
    ),
    Export(
        "Excel: sep=;",
        "sep=;\nEmail;Name\nana@example.org;Li, Ana\n",
        active="ana",
        fields={"Name": "name"},
    ),
    Export("Excel: Unicode text", "Email\tName\nana@example.org\tŽofie\n", active="ana", encoding="utf-16"),
    Export("UTF-16 without a mark", "Email,Name\nana@example.org,Ana\n", active="ana", encoding="utf-16-le"),
    Export(
        "UTF-8 with a mark", "Почта;Имя\nana@example.org;Анна\n", active="ana", encoding="utf-8-sig"
    ),
    Export(
        "From an address book",
        'email\n"Li, Ana <ana@example.org>"\nBo <mailto:bo@example.org>\nmailto:cy@example.org?subject=Hi\n'
        "<di@example.org>\n'ed@example.org'\nfy@example.org;\n",
        active="ana bo cy di ed fy",
    ),
    Export(
        "Quotes behind backslashes",
        'email,name\n"ana@example.org","Ana \\"the boss\\" Li"\n"bo@example.org","Bo"\n',
        active="ana bo",
    ),
    Export("Single quotes", "'email','name'\n'ana@example.org','Li, Ana'\n", active="ana"),
    Export(
        "Every line quoted as a whole",
        '"Email,Name,Status"\n"ana@example.org,""Li, Ana"",active"\n"bo@example.org,Bo,unsubscribed"\n',
        active="ana",
        gone="bo",
    ),
    Export("Bars", "email|name\nana@example.org|Ana\n", active="ana"),
    Export(
        "Headers twice",
        "Email,Note,Note,,\nana@example.org,a,b,c,d\n",
        active="ana",
    ),
    Export(
        "HubSpot",
        "Record ID,First Name,Last Name,Email,Unsubscribed from all email,Marketing contact status\n"
        "1,Ana,Li,ana@example.org,,Marketing contact\n2,Bo,,bo@example.org,true,Marketing contact\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "Excel booleans in Russian",
        "email;подписан\nana@example.org;ИСТИНА\nbo@example.org;ЛОЖЬ\n",
        active="ana",
        gone="bo",
    ),
    Export(
        "A consent that was not given",
        "email,Marketing consent\nana@example.org,yes\nbo@example.org,\n",
        active="ana",
        out=1,
    ),
]
