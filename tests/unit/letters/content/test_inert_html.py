"""What mail may carry: attacks are refused by what they are made of, real mail passes as it is."""

from __future__ import annotations

import pytest

from mailout.letters.content.inert_html import Active, require_inert

ATTACKS = r"""
<script>alert(1)</script>
<script src=//x.y/z></script>
<svg><script>alert(1)</script></svg>
<svg><style><script>alert(1)</script></style></svg>
<svg onload=alert(1)>
<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>
<svg><animate onbegin=alert(1) attributeName=x>
<svg><set attributeName=href to=javascript:alert(1)>
<svg><foreignObject><iframe srcdoc="<script>alert(1)</script>"></foreignObject></svg>
<svg><use href="data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=#x"></use></svg>
<math><mi//xlink:href="data:x,<script>alert(4)</script>">
<math><annotation-xml encoding="text/html"><script>alert(1)</script></annotation-xml></math>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">
<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>
<iframe src="data:text/html,<script>alert(1)</script>"></iframe>
<iframe src="https://x.y"></iframe>
<iframe srcdoc="&lt;script&gt;alert(1)&lt;/script&gt;">
<object data="data:text/html;base64,PHNjcmlwdD4="></object>
<object type="text/x-scriptlet" data="https://x.y/z"></object>
<embed src="https://x.y/z.swf" allowscriptaccess=always>
<applet code=x></applet>
<img src=x onerror=alert(1)>
<img/src="x"/onerror=alert(1)>
<img src="x` `<script>alert(1)</script>"` `>
<img src=javascript:alert(1)>
<img src="jav&#x09;ascript:alert(1);">
<img src="&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;:alert(1)">
<img src=" &#14; javascript:alert(1);">
<img dynsrc="javascript:alert(1)">
<img lowsrc="javascript:alert(1)">
<img ""><script>alert(1)</script>">
<img src=data:image/svg+xml;base64,PHN2Zy8+>
<input type="image" src="javascript:alert(1);">
<input autofocus onfocus=alert(1)>
<body onload=alert(1)>
<body background="javascript:alert(1)">
<bgsound src="javascript:alert(1);">
<br size="&{alert(1)}" onx=y>
<link rel="stylesheet" href="javascript:alert(1);">
<link rel=import href="data:text/html,x">
<link rel="preload" as="script" href="https://x.y/z.js">
<style>@import'javascript:alert(1)';</style>
<style>li {list-style-image: url("javascript:alert(1)");}</style>
<style>.x{background-image:url("data:text/html,x");}</style>
<style>body{-moz-binding:url("https://x.y/x.xml#xss")}</style>
<style>p{behavior:url(https://x.y/x.htc)}</style>
<div style="background-image: url(javascript:alert(1))">
<div style="background-image:\0075\0072\006C\0028'\006a\0061\0076\0061\0073\0063\0072\0069\0070\0074\003a\0061lert(1)'\0029">
<div style="width: expression(alert(1));">
<div style="xss:expr/*XSS*/ession(alert(1))">
<div style="width:\65xpression(alert(1))">
<xss style="behavior: url(xss.htc);">
<meta http-equiv="refresh" content="0;url=javascript:alert(1);">
<meta http-equiv="refresh" content="0;url=https://x.y">
<meta http-equiv="Set-Cookie" content="a=b">
<meta http-equiv="Content-Security-Policy" content="script-src *">
<base href="javascript:alert(1);//">
<frameset><frame src="javascript:alert(1);"></frameset>
<table background="javascript:alert(1)"><td>x</table>
<a href="javascript:alert(1)">x</a>
<a href="java&#10;script:alert(1)">x</a>
<a href="JaVaScRiPt:alert(1)">x</a>
<a href="javascript&colon;alert(1)">x</a>
<a href="&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;alert(1)">x</a>
<a href="data:text/html,<script>alert(1)</script>">x</a>
<a href="vbscript:msgbox(1)">x</a>
<a href="file:///etc/passwd">x</a>
<a href="https://x.y" onclick=alert(1)>x</a>
<a href="https://x.y" ping="https://z.y">x</a>
<a ONMOUSEOVER="alert(1)">x</a>
<a folded onauxclick=alert(1)>x</a>
<form action="https://x.y"><input name=password></form>
<form><button formaction=javascript:alert(1)>x</button></form>
<button form=x formaction="https://x.y">x</button>
<isindex type=image src=1 onerror=alert(1)>
<marquee onstart=alert(1)>x</marquee>
<video><source onerror="alert(1)"></video>
<audio src=x onerror=alert(1)>
<details open ontoggle=alert(1)>x</details>
<keygen autofocus onfocus=alert(1)>
<select autofocus onfocus=alert(1)></select>
<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>
<template><script>alert(1)</script></template>
<xmp><p title="</xmp><script>alert(1)</script>"></xmp>
<plaintext><script>alert(1)</script>
<listing>&lt;img onerror=alert(1) src=x&gt;</listing>
<noembed><img title="</noembed><img src onerror=alert(1)>"></noembed>
<noframes><img title="</noframes><img src onerror=alert(1)>"></noframes>
<dialog open onclose=alert(1)>x</dialog>
<portal src="javascript:alert(1)"></portal>
<slot><script>alert(1)</script></slot>
<!--><script>alert(1)</script>-->
<!--[if gte IE 4]><script>alert(1);</script><![endif]-->
<!--[if mso]><img src=x onerror=alert(1)><![endif]-->
<!--[if mso]><a href="javascript:alert(1)">x</a><![endif]-->
<!--[if mso]><v:rect onclick="alert(1)"></v:rect><![endif]-->
<!--[if mso]><v:rect href="javascript:alert(1)"></v:rect><![endif]-->
<!--[if mso]><iframe src="https://x.y"></iframe><![endif]-->
<!--[if mso]><![><![endif]-->
<!--[if mso]><![x[<![endif]-->
<![CDATA[><script>alert(1)</script>]]>
<?xml version="1.0"?><?xml-stylesheet href="javascript:alert(1)"?><img src=x onerror=alert(1)>
<v:rect onmouseover="alert(1)">x</v:rect>
<o:p onclick=x>y</o:p>
<html:script>alert(1)</html:script>
<title><img title="</title><img src=x onerror=alert(1)>"></title>
<textarea><img title="</textarea><img src=x onerror=alert(1)>"></textarea>
<style><img title="</style><img src=x onerror=alert(1)>"></style>
<image src=x href=javascript:alert(1) onerror=alert(1)>
<layer src="https://x.y/z.js"></layer>
<x contenteditable onblur=alert(1)>x</x>
<img srcset="https://x.y 1x, javascript:alert(1) 2x">
<img src="https://x.y" usemap=#m><map name=m><area href="javascript:alert(1)"></map>
"""

MJML = """<!doctype html><html xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:schemas-microsoft-com:vml"
 xmlns:o="urn:schemas-microsoft-com:office:office" lang="en"><head><title>Hello</title>
<!--[if !mso]><!--><meta http-equiv="X-UA-Compatible" content="IE=edge"><!--<![endif]-->
<meta http-equiv="Content-Type" content="text/html; charset=UTF-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style type="text/css">#outlook a { padding:0; } body { margin:0;-webkit-text-size-adjust:100%; }
 table, td { border-collapse:collapse;mso-table-lspace:0pt; } img { -ms-interpolation-mode:bicubic; }</style>
<!--[if mso]><noscript><xml><o:OfficeDocumentSettings><o:AllowPNG/><o:PixelsPerInch>96</o:PixelsPerInch>
</o:OfficeDocumentSettings></xml></noscript><![endif]-->
<!--[if lte mso 11]><style type="text/css">.mj-outlook-group-fix { width:100% !important; }</style><![endif]-->
<!--[if !mso]><!--><link href="https://fonts.googleapis.com/css?family=Ubuntu:300,400" rel="stylesheet">
<style type="text/css">@import url(https://fonts.googleapis.com/css?family=Ubuntu:300,400);</style><!--<![endif]-->
<style type="text/css">@media only screen and (min-width:480px) { .mj-column-per-100 { width:100% !important; } }</style>
</head><body style="word-spacing:normal;background-color:#F4F4F4;"><div aria-roledescription="email" role="article">
<!--[if mso | IE]><table align="center" border="0" cellpadding="0" cellspacing="0" style="width:600px;" width="600"
 bgcolor="#ffffff"><tr><td style="line-height:0px;font-size:0px;mso-line-height-rule:exactly;"><v:image
 style="border:0;height:400px;mso-position-horizontal:center;position:absolute;width:600px;z-index:-3;"
 src="https://x.y/hero.jpg" xmlns:v="urn:schemas-microsoft-com:vml" /><![endif]-->
<div style="margin:0 auto;max-width:600px;background:url('https://x.y/bg.png') center / cover no-repeat;">
<table align="center" background="https://x.y/bg.png" role="presentation" style="width:100%;"><tbody><tr>
<td style="direction:ltr;text-align:center;"><p style="border-top:solid 4px #F45E43">{{ name }}</p>
<a href="{{ link }}" style="display:inline-block" target="_blank">*|BUTTON|* %%x%% {% if a %}b{% endif %}</a>
<a href="mailto:a@b.c?subject=x">m</a><a href="tel:+1">t</a><a href="#top">u</a><a href="/relative">r</a>
<img alt="" height="auto" src="cid:logo@x" width="100"><img alt="" src="data:image/png;base64,iVBORw0KGgo=">
</td></tr></tbody></table></div><!--[if mso | IE]></td></tr></table><![endif]--></div></body></html>"""

OUTLOOK = """<div><!--[if mso]>
<v:roundrect xmlns:v="urn:schemas-microsoft-com:vml" xmlns:w="urn:schemas-microsoft-com:office:word"
 href="https://x.y/" style="height:40px;v-text-anchor:middle;width:200px;" arcsize="10%" strokecolor="#1e3650"
 fillcolor="#ff3e00" esdevVmlButton><w:anchorlock/><v:fill type="tile" src="https://x.y/a.png" color="#fff"/>
<v:textbox inset="0,0,0,0"><center style="color:#fff;font-family:sans-serif;">Show me</center></v:textbox>
</v:roundrect><![endif]--><!--[if !mso]> <!--><a href="https://x.y/">Show me</a><!-- <![endif]-->
<![if !mso]><p>revealed</p><![endif]><o:p>&nbsp;</o:p>
<style>v\\:* { behavior: url(#default#VML); display:inline-block; } a{scroll-behavior:smooth}</style>
<font face="Arial" size="2" color="#000">x</font><td nowrap valign="top" data-x="1" mc:edit="a">y</td></div>"""


def is_active(html: str) -> bool:
    try:
        require_inert(html)
    except Active:
        return True
    return False


@pytest.mark.parametrize("attack", ATTACKS.strip().splitlines())
def test_nothing_active_gets_through(attack: str) -> None:
    for html in (attack, f"<html><body><table><tr><td>{attack}</td></tr></table></body></html>"):
        if not html.startswith("<html") or ("<body" not in attack and "<frameset" not in attack):
            with pytest.raises(Active):
                require_inert(html)


@pytest.mark.parametrize("mail", [MJML, OUTLOOK], ids=["mjml", "outlook"])
def test_real_mail_passes(mail: str) -> None:
    assert not is_active(mail)


@pytest.mark.parametrize(
    "part", ["<!--[if mso]><a ", "<!--[if mso]><", "<style>/*", "<p style='\\", "<!--[if"]
)
def test_broken_mail_is_read_however_long_it_is(part: str) -> None:
    """Something quadratic would keep the gateway busy for minutes: pytest's own time limit ends that."""
    assert is_active(part * 20_000) == is_active(part * 10_000)
