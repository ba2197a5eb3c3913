"""Secrets among Spark's settings are not shown, however they are quoted."""

import pytest

from conf.spark_settings import shown

OPTIONS = "spark.executor.extraJavaOptions"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("-Dssl.keyPassword=hidden -Da=b", "-Dssl.keyPassword=*** -Da=b"),
        ("'-Dssl.keyPassword=hidden too' -Da=b", "'-Dssl.keyPassword=***' -Da=b"),
        ("-Dssl.keyPassword='hidden too' -Da=b", "-Dssl.keyPassword=*** -Da=b"),
        ('-Dssl.keyPassword="hidden \\" too" -Da=b', "-Dssl.keyPassword=*** -Da=b"),
        ("-Dssl.keyPassword=hidden\\ too -Da=b", "-Dssl.keyPassword=*** -Da=b"),
        ("-Dssl.keyPassword='hidden too", "-Dssl.keyPassword=***"),
        ("-Da='b c' -Dtoken it's 'x", "-Da='b c' -Dtoken it's 'x"),
    ],
)
def test_a_secret_among_javas_options_is_hidden_as_a_whole(given: str, expected: str) -> None:
    assert shown(OPTIONS, given) == expected
