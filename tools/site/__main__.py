"""The command `python -m tools.site`."""

import argparse
import pathlib
import sys

from tools.site.barriers import barriers
from tools.site.browser import Browser, BrowserError, find_browser
from tools.site.check import check
from tools.site.server import serve
from tools.site.tab import VARIANTS, Tab

DESCRIPTION = """\
Opens every page of a built site in headless Chromium, in a desktop and a phone
window, light and dark, and reports errors and accessibility problems."""


def look(site, browser, variant, pictures=None, pages=None, whole=None):
    """Checks the pages of a site in one variant.

    Args:
        site: path of the built site.
        browser: a running `Browser`.
        variant: `Variant`.
        pictures: path of a folder for screenshots. Default: no screenshots.
        pages: set of str, relative to the site. Default: all.
        whole: set of str. The pages that are checked as a whole; of the
            others, only the article. Default: all.

    Returns:
        Dict from page, relative to the site, to list of problems.
    """
    site = pathlib.Path(site)
    found = {}
    tab = Tab(browser, variant)
    with serve(site, search=False) as address:
        for path in sorted(site.rglob("*.html")):
            page = path.relative_to(site).as_posix()
            if pages is not None and page not in pages:
                continue
            try:
                found[page] = check(tab, address + page)
                if pictures:
                    tab.screenshot(_picture(pictures, page, variant))
                # It changes the page.
                found[page] += barriers(tab, whole is None or page in whole)
            except BrowserError as error:
                raise BrowserError(
                    f"{page}, {variant.name}: {error}"
                ) from error
    tab.close()
    return found


def _picture(folder, page, variant):
    name = page.removesuffix(".html").replace("/", "-")
    return pathlib.Path(folder) / f"{name}-{variant.name}.png"


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.site", description=DESCRIPTION
    )
    parser.add_argument("site", help="folder of the built site")
    parser.add_argument(
        "--pictures", metavar="FOLDER", help="folder for screenshots"
    )
    options = parser.parse_args(arguments)
    program = find_browser()
    if not program:
        print("site: no Chromium is installed", file=sys.stderr)
        return 2
    if not (pathlib.Path(options.site) / "index.html").is_file():
        print(f"site: no index.html in {options.site}", file=sys.stderr)
        return 2
    if options.pictures:
        pathlib.Path(options.pictures).mkdir(parents=True, exist_ok=True)
    wrong = 0
    with Browser(program) as browser:
        for variant in VARIANTS:
            found = look(options.site, browser, variant, options.pictures)
            print(f"{variant.name}: {len(found)} pages")
            for page, complaints in found.items():
                for complaint in complaints:
                    print(f"  {page}: {complaint}")
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
