"""Compares the estimator with the table of settings, which is that of the command line too."""

import inspect
import os
import subprocess
from typing import get_args, get_type_hints

import numpy as np
import pytest

from leukos import AdaptiveWhitener
from leukos._leukos import settings

PARAMETERS = inspect.signature(AdaptiveWhitener).parameters


def test_signature_is_the_table():
    assert list(PARAMETERS) == [setting.name for setting in settings()]
    for setting in settings():
        default = PARAMETERS[setting.name].default
        assert default == setting.default and type(default) is type(setting.default), setting.name


def test_types_have_the_words_of_the_table():
    hints = get_type_hints(AdaptiveWhitener.__init__)
    for setting in settings():
        parts = [hints[setting.name], *get_args(hints[setting.name])]
        words = [word for part in parts for word in get_args(part) if isinstance(word, str)]
        assert words == [word for word, _ in setting.words], setting.name


def test_every_word_is_taken():
    X = np.random.default_rng(0).normal(size=(50, 2))
    for setting in settings():
        for word, _ in setting.words:
            AdaptiveWhitener(**{setting.name: word}).fit(X)


def test_defaults_differ_from_the_command_line_where_the_contract_says_so():
    assert {setting.name: setting.default for setting in settings()}["bad_samples"] == "error"
    program = os.environ.get("LEUKOS_PROGRAM")
    if program is None:
        pytest.skip("LEUKOS_PROGRAM does not name the program")
    told = subprocess.run([program, "fit", "--help"], capture_output=True, text=True, check=True).stdout
    for setting in settings():
        _, _, own = told.partition(f"--{setting.name.replace('_', '-')} <")
        default = own.partition("[default: ")[2].partition("]")[0]
        usual = {"bad_samples": "mark", "random_state": "0"}.get(setting.name, setting.default_in_words)
        assert default == usual, setting.name
