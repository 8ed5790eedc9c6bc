"""Statistics and curves: what a figure of the report is made of."""

import math
import unittest

import support  # noqa: F401
from harness import curves, stats
from harness.errors import BenchError


class Statistics(unittest.TestCase):
    def test_median_lies_between_the_halves(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertEqual(stats.median([4, 1, 2, 3]), 2.5)

    def test_median_of_nothing_is_refused(self):
        with self.assertRaises(BenchError):
            stats.median([])

    def test_summary_gives_median_and_range(self):
        self.assertEqual(stats.summary([5, 1, 3]), {"median": 3, "min": 1, "max": 5, "n": 3})

    def test_one_round_that_missed_the_target_makes_the_summary_a_miss(self):
        self.assertIsNone(stats.summary([1.0, None, 1.0]))

    def test_ratios_are_paired_by_round(self):
        # A neighbour that slows the second round of both sides to a tenth must not show in the ratio.
        found = stats.ratio_summary([1.0, 10.0], [2.0, 20.0])
        self.assertEqual((found["min"], found["median"], found["max"]), (0.5, 0.5, 0.5))

    def test_unpaired_ratio_spans_all_that_the_values_allow(self):
        found = stats.ratio_summary([2.0], [1.0, 2.0, 4.0])
        self.assertEqual((found["min"], found["median"], found["max"]), (0.5, 1.0, 2.0))

    def test_no_ratio_to_zero_or_to_a_miss(self):
        self.assertIsNone(stats.ratio_summary([1.0], [0.0]))
        self.assertIsNone(stats.ratio_summary([None], [1.0]))

    def test_outlier_is_found_and_noise_is_not(self):
        self.assertEqual(stats.outliers([1.0, 1.01, 0.99, 1.0, 5.0]), [4])
        self.assertEqual(stats.outliers([1.0, 1.0, 1.0, 1.001]), [])


class SecondsToQuality(unittest.TestCase):
    kCurve = [[1, 0.5, 1.0], [2, 1.0, 0.8], [3, 1.5, 0.7], [4, 2.0, 0.75]]

    def test_first_line_that_reaches_the_target_counts(self):
        self.assertEqual(curves.seconds_to(self.kCurve, 0.8, "lower"), 1.0)
        self.assertEqual(curves.seconds_to(self.kCurve, 0.79, "lower"), 1.5)

    def test_target_beyond_the_best_is_not_reached(self):
        self.assertIsNone(curves.seconds_to(self.kCurve, 0.6, "lower"))

    def test_higher_is_better_for_likelihoods(self):
        rising = [[1, 0.5, -9.0], [2, 1.0, -8.0]]
        self.assertEqual(curves.seconds_to(rising, -8.5, "higher"), 1.0)

    def test_nan_and_missing_qualities_reach_nothing(self):
        self.assertIsNone(curves.seconds_to([[1, 1.0, math.nan], [2, 2.0, None]], 100.0, "lower"))

    def test_best_is_the_earliest_of_equals(self):
        self.assertEqual(curves.best_point([[1, 1, 0.5], [2, 2, 0.5], [3, 3, 0.6]], "lower"), [1, 1, 0.5])
        self.assertIsNone(curves.best_point([[1, 1, None]], "lower"))

    def test_tuning_stops_on_overfitting_and_divergence_only(self):
        self.assertFalse(curves.worsening(self.kCurve, "lower", 2))
        self.assertTrue(curves.worsening(self.kCurve, "lower", 1))
        self.assertTrue(curves.worsening([[1, 1, 0.5], [2, 2, math.nan]], "lower", 10))
        self.assertFalse(curves.worsening([], "lower", 1))


if __name__ == "__main__":
    unittest.main()
