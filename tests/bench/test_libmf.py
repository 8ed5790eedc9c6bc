"""The reader of LIBMF's table, on lines that it printed."""

import math
import unittest

import support  # noqa: F401
from harness import libmf

kWithValidation = """iter      tr_rmse      va_rmse          obj
   0       3.0526       1.7546   3.9877e+06
   1       1.5480       1.4310   1.3817e+06
   2          nan          nan          nan
"""
kWithout = """reading...
iter      tr_rmse          obj
   0       2.0237   2.1426e+06
   1       1.2738   1.2066e+06
"""


def stamped(text, start=10.0, step=0.5):
    return [(start + step * index, line) for index, line in enumerate(text.splitlines())]


class Table(unittest.TestCase):
    def test_iterations_count_from_one_and_have_the_held_out_error(self):
        start, rows = libmf.parse(stamped(kWithValidation))
        self.assertEqual(start, 10.0)
        self.assertEqual(rows[:2], [(1, 10.5, 1.7546), (2, 11.0, 1.4310)])

    def test_divergence_is_not_a_number(self):
        _, rows = libmf.parse(stamped(kWithValidation))
        self.assertTrue(math.isnan(rows[2][2]))

    def test_without_validation_the_training_error_is_not_taken_for_it(self):
        start, rows = libmf.parse(stamped(kWithout))
        self.assertEqual(start, 10.5)
        self.assertEqual(rows, [(1, 11.0, None), (2, 11.5, None)])

    def test_seconds_start_at_the_header(self):
        self.assertEqual(libmf.LibMf._curve(stamped(kWithout))[0], [1, 0.5, None])

    def test_text_without_a_table_has_no_rows(self):
        self.assertEqual(libmf.parse(stamped("cannot open file\n")), (None, []))


if __name__ == "__main__":
    unittest.main()
