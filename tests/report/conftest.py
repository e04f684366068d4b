"""A browser that opens the pages of a module, one after the other."""

import pytest
from chromium import Page, find_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if find_chromium() is None:
        pytest.skip("Chromium is not installed (GEOMIX_CHROMIUM may name one)")
    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page
