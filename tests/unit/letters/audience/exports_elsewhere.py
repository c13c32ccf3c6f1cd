# ruff: noqa: E501
"""Lists from shops, forms, address books and office programs, in six languages and several encodings."""

from __future__ import annotations

from tests.unit.letters.audience.exports import Export

ELSEWHERE = [
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
    Export("UTF-8 with a mark", "Почта;Имя\nana@example.org;Анна\n", active="ana", encoding="utf-8-sig"),
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
