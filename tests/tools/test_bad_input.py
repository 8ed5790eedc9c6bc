"""Input that is wrong: exit code 3, file and line, what was expected and what stood there, and nothing left in --out.
Input that is odd but valid: exit code 0 and a warning that also stands in run.json."""

import gzip
import os
import unittest

from support import CommandLine, DATA, ratings_text


class BadRatings(CommandLine):
    def refused(self, content, *says, line=None, name="bad.txt", words=()):
        data = self.write(name, content)
        done = self.train(data, self.dir / "r", *words, expect=DATA)
        place = f"{data}:{line}:" if line else f"{data}"
        self.assertIn(place, done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertFalse((self.dir / "r").exists(), "something was left in --out")
        return done

    def test_empty_file(self):
        self.refused("")

    def test_only_comments(self):
        self.refused("# nothing\n# here\n")

    def test_only_blank_lines(self):
        self.refused("\n\n  \n")

    def test_missing_column(self):
        self.refused("a b 1\na c 2\na d\n", "expected", "got", line=3)

    def test_surplus_column(self):
        self.refused("a b 1\na c 2 99 5 6\n", "expected", "got", line=2)

    def test_a_word_where_a_number_belongs(self):
        self.refused("a b 1\na c two\n", "expected", "'two'", line=2)

    def test_not_a_number_and_infinity(self):
        for word in ("nan", "NaN", "inf", "-inf", "Infinity"):
            with self.subTest(word):
                self.refused(f"a b 1\na c {word}\n", "expected", line=2)

    def test_a_number_beyond_any_double(self):
        self.refused("a b 1\na c 1e999\n", "expected", line=2)

    def test_truncated_gzip(self):
        whole = gzip.compress(ratings_text().encode())
        self.refused(whole[: len(whole) // 2], "truncated", name="bad.txt.gz")
        self.refused(whole[:-4], "truncated", name="bad.txt.gz")
        for size in (2, 12, 20):
            self.refused(whole[:size], "truncated", name="bad.txt.gz")

    def test_damaged_gzip(self):
        whole = bytearray(gzip.compress(ratings_text().encode()))
        whole[len(whole) // 2] ^= 0xFF
        self.refused(bytes(whole), name="bad.txt.gz")

    def test_directory_instead_of_a_file(self):
        (self.dir / "folder").mkdir()
        done = self.train(self.dir / "folder", self.dir / "r", expect=DATA)
        self.assertIn(str(self.dir / "folder"), done.stderr)
        self.assertFalse((self.dir / "r").exists())

    def test_utf_16(self):
        text, start = ratings_text(), "expected UTF-8 or ASCII text, got UTF-16 (byte order mark "
        for content, mark in ((b"\xff\xfe" + text.encode("utf-16-le"), "FF FE"),
                              (b"\xfe\xff" + text.encode("utf-16-be"), "FE FF")):
            self.refused(content, start + mark + ")")
            self.refused(gzip.compress(content), start + mark + ")", name="bad.txt.gz")
            for form in ("ratings", "matrix-market", "svmlight", "docword", "text", "edges", "csv"):
                done = self.run_orrery("data", "info", self.write("wide", content), "--format", form, expect=DATA)
                self.assertIn(start + mark, done.stderr)

    def test_utf_16_in_the_other_texts_of_a_command(self):
        data = self.ratings()
        wide = self.write("wide.txt", b"\xff\xfe" + ratings_text().encode("utf-16-le"))
        corpus = self.write("corpus.txt", "2\n3\n2\n1 1 1\n2 3 1\n")
        self.train(data, self.dir / "ok", "--iterations", "1")
        for words in (("train", "mf", data, "--valid", wide, "--out", self.dir / "r"),
                      ("train", "mf", data, "--config", wide, "--out", self.dir / "r"),
                      ("data", "info", corpus, "--vocab", wide), ("data", "split", wide, "--out", self.dir / "r"),
                      ("data", "convert", wide, "--to", "matrix-market", "--out", self.dir / "r"),
                      ("predict", "--model", self.dir / "ok", wide, "--out", self.dir / "r")):
            with self.subTest(words):
                done = self.run_orrery(*words, expect=DATA)
                self.assertIn(f"{wide}: expected UTF-8 or ASCII text, got UTF-16", done.stderr)
                self.assertFalse((self.dir / "r").exists())

    def test_missing_file(self):
        done = self.train(self.dir / "nowhere", self.dir / "r", expect=DATA)
        self.assertIn(str(self.dir / "nowhere"), done.stderr)
        self.assertFalse((self.dir / "r").exists())

    def test_binary_rubbish(self):
        self.refused(bytes(range(256)) * 40)

    def test_matrix_market_index_out_of_range(self):
        head = "%%MatrixMarket matrix coordinate real general\n"
        self.refused(head + "2 2 2\n1 1 3\n3 1 4\n", "expected", line=4)
        self.refused(head + "2 2 2\n0 1 3\n1 1 4\n", "expected", line=3)

    def test_matrix_market_with_a_wrong_count(self):
        head = "%%MatrixMarket matrix coordinate real general\n"
        self.refused(head + "2 2 3\n1 1 3\n2 1 4\n", "expected")
        self.refused(head + "2 2 1\n1 1 3\n2 1 4\n", "expected")

    def test_a_hostile_size_does_not_allocate(self):
        head = "%%MatrixMarket matrix coordinate real general\n"
        self.refused(head + "4000000000 4000000000 9000000000000000000\n1 1 3\n")

    def test_index_beyond_any_integer(self):
        head = "%%MatrixMarket matrix coordinate real general\n"
        self.refused(head + "2 2 1\n99999999999999999999999 1 3\n", "expected", line=3)

    def test_bad_held_out_data(self):
        data, bad = self.ratings(), self.write("bad.txt", "a b 1\na c x\n")
        done = self.train(data, self.dir / "r", "--valid", bad, expect=DATA)
        self.assertIn(f"{bad}:2:", done.stderr)
        self.assertFalse((self.dir / "r").exists())

    def test_a_good_run_survives_a_bad_one(self):
        data, out = self.ratings(), self.dir / "r"
        self.train(data, out, "--iterations", "2")
        first = self.checksum(out)
        self.train(self.write("bad.txt", "a b\n"), out, "--overwrite", expect=DATA)
        self.assertEqual(self.checksum(out), first)
        self.run_orrery("evaluate", "--model", out, data)

    def test_several_threads_name_the_first_bad_line(self):
        lines = ratings_text(users=300, items=200, ratings=30000).splitlines()
        lines[11111] = "u1 i1 oops"
        lines[25555] = "u1 i1 later"
        for threads in (1, 3, 8):
            self.refused("\n".join(lines) + "\n", "'oops'", line=11112, words=("--threads", threads))


class BadModels(CommandLine):
    def trained(self):
        data = self.ratings()
        self.train(data, self.dir / "r", "--iterations", "2")
        return data, self.dir / "r"

    def test_no_model(self):
        data = self.ratings()
        (self.dir / "empty").mkdir()
        for where in ("nowhere", "empty"):
            done = self.run_orrery("evaluate", "--model", self.dir / where, data, expect=DATA)
            self.assertIn(where, done.stderr)
            self.run_orrery("verify", self.dir / where, expect=DATA)

    def test_damaged_and_truncated_models(self):
        data, out = self.trained()
        arrays = sorted((out / "model").glob("*.npy"), key=lambda path: -path.stat().st_size)
        whole = arrays[0].read_bytes()
        damaged = bytearray(whole)
        damaged[-3] ^= 1
        for content in (bytes(damaged), whole[:-8], b""):
            arrays[0].write_bytes(content)
            done = self.run_orrery("predict", "--model", out, data, "--out", self.dir / "p", expect=DATA)
            self.assertIn(arrays[0].name, done.stderr)
            self.assertFalse((self.dir / "p").exists())
            self.assertNotEqual(self.run_orrery("verify", out, expect=None).returncode, 0)
        arrays[0].write_bytes(whole)
        self.run_orrery("verify", out)

    def test_a_manifest_that_is_none(self):
        data, out = self.trained()
        (out / "model" / "manifest.json").write_text("{")
        self.run_orrery("evaluate", "--model", out, data, expect=DATA)

    def test_verify_says_what_it_cannot_read_and_why(self):
        _, out = self.trained()
        record, manifest = out / "run.json", out / "model" / "manifest.json"
        array = next((out / "model").glob("*.npy"))
        for file, content, says in ((record, None, "No such file"), (record, "folder", "Is a directory"),
                                    (record, b"{", "cut short or damaged"), (record, b"[]", "not a JSON object"),
                                    (manifest, None, "holds no model"), (manifest, "folder", "Is a directory"),
                                    (manifest, b"{", "cut short or damaged"), (array, None, "No such file"),
                                    (array, "folder", "Is a directory"), (array, b"", "expected")):
            with self.subTest((file.name, content)):
                whole = file.read_bytes()
                file.unlink()
                if content == "folder":
                    file.mkdir()
                elif content is not None:
                    file.write_bytes(content)
                done = self.run_orrery("verify", out, expect=DATA)
                self.assertIn(str(out), done.stderr)
                self.assertIn(says, done.stderr)
                if content == "folder":
                    file.rmdir()
                file.write_bytes(whole)
        self.run_orrery("verify", out)

    def test_an_unknown_user(self):
        _, out = self.trained()
        done = self.run_orrery("recommend", "--model", out, "--user", "nobody", expect=None)
        self.assertIn(done.returncode, (0, 2))

    def test_data_that_cannot_be_read(self):
        _, out = self.trained()
        bad = self.write("bad.txt", "a b c d e f\n")
        for command in ("predict", "infer"):
            self.run_orrery(command, "--model", out, bad, "--out", self.dir / "p", expect=DATA)
            self.assertFalse((self.dir / "p").exists())
        self.run_orrery("evaluate", "--model", out, bad, expect=DATA)


class Accepted(CommandLine):
    def accepted(self, content, *words, warns=None, name="odd.txt"):
        data = self.write(name, content)
        self.train(data, self.dir / "r", "--iterations", "3", "--overwrite", *words)
        record = self.record(self.dir / "r")
        if warns:
            self.assertTrue(any(warns in text for text in record["warnings"]), record["warnings"])
        value = record["result"]["value"]
        self.assertIsInstance(value, float, "the objective is no finite number")
        predicted = self.run_orrery("predict", "--model", self.dir / "r", data, "--out", "-").stdout.split()
        for text in predicted:
            self.assertTrue(abs(float(text)) < 1e6, text)
        return record

    def test_line_ends_of_windows(self):
        text = ratings_text()
        plain = self.accepted(text)["result"]["model_checksum"]
        self.assertEqual(self.accepted(text.replace("\n", "\r\n"))["result"]["model_checksum"], plain)

    def test_a_utf_8_byte_order_mark_makes_no_difference(self):
        mark, text = b"\xef\xbb\xbf", ratings_text().encode()
        plain = self.accepted(text)["result"]["model_checksum"]
        self.assertEqual(self.accepted(mark + text)["result"]["model_checksum"], plain)
        self.assertEqual(self.accepted(gzip.compress(mark + text), name="odd.gz")["result"]["model_checksum"], plain)
        header = b"user,item,rating\n" + text.replace(b" ", b",")
        self.assertEqual(self.accepted(mark + header)["result"]["model_checksum"], plain)
        config = self.write("run.toml", mark + b"seed = 7\n")
        self.assertEqual(self.accepted(text, "--config", config)["parameters"]["seed"], 7)
        bad = self.train(self.write("bad.txt", mark + b"a b x\n"), self.dir / "bad", expect=DATA)
        self.assertIn("bad.txt:1:5: expected", bad.stderr)

    def test_missing_final_newline(self):
        text = ratings_text()
        plain = self.accepted(text)["result"]["model_checksum"]
        self.assertEqual(self.accepted(text.rstrip("\n"))["result"]["model_checksum"], plain)

    def test_separators_header_and_gzip_make_no_difference(self):
        plain = self.accepted(ratings_text())["result"]["model_checksum"]
        for separator in (",", ";", "::", "\t"):
            text = ratings_text(separator=separator)
            self.assertEqual(self.accepted(text)["result"]["model_checksum"], plain, separator)
        text = "user,item,rating\n" + ratings_text(separator=",")
        self.assertEqual(self.accepted(text)["result"]["model_checksum"], plain)
        packed = gzip.compress(ratings_text().encode())
        self.assertEqual(self.accepted(packed, name="odd.gz")["result"]["model_checksum"], plain)

    def test_a_timestamp_is_ignored(self):
        text = "".join(f"{line} 978300760\n" for line in ratings_text().splitlines())
        self.assertEqual(self.accepted(text)["result"]["model_checksum"],
                         self.accepted(ratings_text())["result"]["model_checksum"])

    def test_duplicated_pairs(self):
        lines = ratings_text().splitlines()
        self.accepted("\n".join(lines + lines[:7]) + "\n", warns="7")

    def test_one_user(self):
        self.accepted("".join(f"me item{i} {1 + i % 5}\n" for i in range(50)))

    def test_one_item(self):
        self.accepted("".join(f"user{i} it {1 + i % 5}\n" for i in range(50)))

    def test_one_rating(self):
        self.accepted("me it 4\n")

    def test_all_ratings_equal(self):
        self.accepted("".join(f"u{i % 7} i{i % 11} 3\n" for i in range(77)))

    def test_rank_above_the_data(self):
        self.accepted("".join(f"u{i % 5} i{i % 4} {i % 5 + 1}\n" for i in range(20)), "--rank", "64", warns="rank")

    def test_more_workers_than_users(self):
        self.accepted("".join(f"u{i % 5} i{i % 4} {i % 5 + 1}\n" for i in range(20)), "--workers", "40")

    def test_any_rating_scale(self):
        for scale, shift in ((1000.0, 0.0), (0.001, 0.0), (1.0, -1000.0)):
            lines = []
            for line in ratings_text().splitlines():
                user, item, value = line.split()
                lines.append(f"{user} {item} {float(value) * scale + shift:.6g}")
            self.accepted("\n".join(lines) + "\n")

    def test_held_out_ids_never_seen(self):
        data = self.ratings()
        held_out = self.write("test.txt", "u1 i1 3\nstranger i1 3\nu1 unheard-of 3\nstranger unheard-of 3\n")
        self.train(data, self.dir / "r", "--valid", held_out, "--iterations", "5")
        warnings = self.record(self.dir / "r")["warnings"]
        self.assertTrue(any("2 ratings of users and 2 of items without a training rating" in text for text in warnings), warnings)
        done = self.run_orrery("predict", "--model", self.dir / "r", held_out, "--out", "-")
        values = [float(text) for text in done.stdout.split()]
        self.assertEqual(len(values), 4)
        for value in values:
            self.assertTrue(0 < value < 8, f"{value} is no sensible rating")

    def test_more_threads_than_workers_is_a_warning(self):
        self.accepted(ratings_text(), "--workers", "2", "--threads", "4", warns="threads")


class OtherFormats(CommandLine):
    """The readers that no algorithm of this build uses are reached through `orrery data info`."""

    def refused(self, content, form, line=None, name="bad.txt"):
        data = self.write(name, content)
        done = self.run_orrery("data", "info", data, "--format", form, expect=DATA)
        self.assertIn(f"{data}:{line}:" if line else f"{data}", done.stderr)

    def test_svmlight(self):
        self.refused("1 1:2 2:3\n-1 0:1\n", "svmlight", line=2)
        self.refused("1 3:2 2:3\n", "svmlight", line=1)
        self.refused("1 2:2 2:3\n", "svmlight", line=1)
        self.refused("1 1:x\n", "svmlight", line=1)
        self.refused("1 1:nan\n", "svmlight", line=1)
        self.refused("1 99999999999999999999:1\n", "svmlight", line=1)

    def test_docword(self):
        self.refused("2\n3\n2\n1 1 1\n", "docword")
        self.refused("2\n3\n1\n1 1 1\n2 1 1\n", "docword")
        self.refused("2\n3\n1\n3 1 1\n", "docword", line=4)
        self.refused("2\n3\n1\n1 4 1\n", "docword", line=4)
        self.refused("2\n3\n", "docword")

    def test_edges(self):
        self.refused("1 2\n3\n", "edges", line=2)
        self.refused("1 2\n3 x\n", "edges", line=2)

    def test_csv(self):
        self.refused("1,2,3\n4,5\n", "csv", line=2)
        self.refused("", "csv")


if __name__ == "__main__":
    unittest.main()
