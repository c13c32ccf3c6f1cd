"""`make demo-ses`: the demo through the SES stub, and what the stub has to say of it."""

from __future__ import annotations

import subprocess
import sys

from tests.stubs.process import ROOT
from tests.stubs.ses_control import ses_stub

HOME = ".mailout-demo-ses"


def main() -> int:
    with ses_stub() as stub:
        command = [sys.executable, "-m", "cli", "demo", "--fresh", "--home", HOME, "--ses", stub.url]
        ended = subprocess.run(command, cwd=ROOT, check=False)
        accepted = stub.accepted()
        print("\nWhat the stand-in for SES has accepted")
        print(f"  {len(accepted['by_address'])} addresses, {len(accepted['twice'])} of them twice")
        for mail in stub.messages()[:1]:
            print(f"  the first one: {mail['subject']!r}")
            for header in mail["headers"]:
                print(f"    {header}: {mail['headers'][header]}")
            print(f"    tags {mail['tags']}")
        return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
