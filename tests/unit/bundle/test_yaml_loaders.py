"""What is written without quotation marks is the same text for another YAML reader."""

import pytest
import yaml

from ipfsmem.bundle.header import render_tags, write_header
from tests.support.parsers import TYPED, VALUES


@pytest.mark.parametrize("text", sorted({*TYPED, *VALUES} - {""}))
def test_text_as_value_name_and_tag_is_the_same_for_pyyaml(text):
    fields = {"name": text, "tags": render_tags([text, "other"]), "x": text, text: "value"}
    found = yaml.safe_load(write_header(fields))
    tags = [tag for tag in (text.strip(" \t\r"), "other") if tag]
    assert found == {"name": text, "tags": tags, "x": text, **{text: "value"}}


def test_fields_with_a_type_of_their_own_stay_bare():
    fields = {"created": "2026-01-02", "important": "true", "confidence": "0.85", "decay": "30d"}
    assert write_header(fields) == "created: 2026-01-02\ndecay: 30d\nimportant: true\nconfidence: 0.85\n"


def test_date_that_is_not_one_is_quoted_for_readers_that_would_refuse_it():
    assert yaml.safe_load(write_header({"created": "2026-13-45"})) == {"created": "2026-13-45"}
