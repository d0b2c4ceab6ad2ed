"""The lists of topics and exercises agree with the tutorials."""

import re

import pytest
from markdown.extensions.toc import slugify

from tools.tutorials import lists
from tools.tutorials.build import PAGES
from tools.tutorials.scripts import discover

pytestmark = pytest.mark.one_backend

SCRIPTS = discover()
TOPICS = (PAGES / "topics.md").read_text("utf-8")


def anchors(name):
    """Returns the anchors of the headings of a tutorial."""
    headings = re.findall(r"(?m)^#+ (.*)$", lists.prose(SCRIPTS[name]))
    return {slugify(re.sub(r"[*`]", "", text), "-") for text in headings}


def test_each_topic_leads_to_sections_that_exist():
    rows = re.findall(r"(?m)^\| (\d+) \| (.*) \| (.*) \|$", TOPICS)
    assert [int(number) for number, *_ in rows] == list(range(1, 18))
    for _, topic, sections in rows:
        links = re.findall(r"\]\((\w+)/index\.md#([^)]+)\)", sections)
        assert links, topic
        for name, anchor in links:
            assert anchor in anchors(name), f"{topic}: {name}#{anchor}"


def test_topics_use_every_tutorial():
    assert {*re.findall(r"\]\((\w+)/index\.md", TOPICS)} == set(SCRIPTS)


def test_list_of_exercises_is_up_to_date():
    found = lists.EXERCISES.read_text("utf-8")
    again = "run .venv/bin/python -m tools.tutorials rewrite"
    assert found == lists.exercises(SCRIPTS), again


def test_index_of_the_folder_is_up_to_date():
    found = lists.INDEX.read_text("utf-8")
    again = "run .venv/bin/python -m tools.tutorials rewrite"
    assert found == lists.index(SCRIPTS), again


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_exercise_has_an_answer(name):
    found = lists.questions(SCRIPTS[name])
    _, _, text = lists.prose(SCRIPTS[name]).partition("## Exercises")
    answers = text.count("<summary>Answer</summary>")
    assert len(found) >= 2, f"{name} needs two exercises, with answers"
    assert answers == len(found), "each exercise needs an answer"


def test_course_leads_through_all_tutorials(tmp_path):
    order = lists.course(SCRIPTS)
    assert sorted(order) == sorted(SCRIPTS)
    with pytest.raises(ValueError, match="No tutorial has a link"):
        lists.course({order[0]: SCRIPTS[order[0]], "x": tmp_path})
