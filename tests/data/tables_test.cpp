// Readers of svmlight, CSV, .npy and edge lists: the same in every way of reading, strict about every line.
#include <gmock/gmock.h>

#include <cmath>

#include "engine/data/dense.h"
#include "engine/data/edges.h"
#include "engine/data/sparse_rows.h"
#include "engine/npy.h"
#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Tables : public DataTest {
 protected:
  SparseData sparse(const std::string& content, const ReadOptions& way = {}) {
    return read_svmlight(file("f", content), {way});
  }
  DenseData dense(const std::string& content, const std::string& label = "", const ReadOptions& way = {}) {
    DenseOptions options;
    options.read = way;
    options.label = label;
    return read_dense(file("f", content), options);
  }
  template <class Read>
  std::string fault(const Read& read) {
    const std::string message = error_of(read), prefix = path("f") + ":";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(std::min(message.size(), prefix.size()));
  }
  std::string sparse_fault(const std::string& content) {
    return fault([&] { sparse(content); });
  }
  std::string dense_fault(const std::string& content) {
    return fault([&] { dense(content); });
  }
  std::string edge_fault(const std::string& content) {
    return fault([&] { read_edges(file("f", content)); });
  }
};

TEST_F(Tables, svmlight_rows_come_out_as_compressed_sparse_rows) {
  const SparseData data = sparse("+1 1:0.5 3:2 # note\n\n# all\n-1 qid:7 2:-1e2\r\n1\n");
  EXPECT_THAT(data.rows.labels, ElementsAre(1, -1, 1));
  EXPECT_THAT(data.rows.starts, ElementsAre(0U, 2U, 3U, 3U));
  EXPECT_THAT(data.rows.columns, ElementsAre(0U, 2U, 1U));
  EXPECT_THAT(data.rows.values, ElementsAre(0.5F, 2.0F, -100.0F));
  EXPECT_EQ(data.rows.column_count, 3U);
  EXPECT_EQ(data.labels.describe(), "-1/1");
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_THAT(data.warnings[0], HasSubstr("1 of 5 lines"));
}

TEST_F(Tables, svmlight_names_every_bad_feature) {
  EXPECT_EQ(sparse_fault("1 0:5\n"), "1:3: expected a feature index from 1 to 4294967294, got '0:5'");
  EXPECT_EQ(sparse_fault("1 4294967295:5\n"), "1:3: expected a feature index from 1 to 4294967294, got '4294967295:5'");
  EXPECT_EQ(sparse_fault("1 99999999999999999999999:5\n"),
            "1:3: expected a feature index from 1 to 4294967294, got '99999999999999999999999:5'");
  EXPECT_EQ(sparse_fault("1 2:5\n1 3:1 2:5\n"),
            "2:7: expected a feature index above 3 (indices must ascend), got '2:5'");
  EXPECT_EQ(sparse_fault("1 3:1 3:5\n"), "1:7: expected a feature index above 3 (indices must ascend), got '3:5'");
  EXPECT_EQ(sparse_fault("1 3:nan\n"), "1:5: expected a feature value that is finite, got 'nan'");
  EXPECT_EQ(sparse_fault("1 3:x\n"), "1:5: expected a feature value, got 'x'");
  EXPECT_EQ(sparse_fault("1 3:\n"), "1:5: expected a feature value, got nothing");
  EXPECT_EQ(sparse_fault("1 3\n"), "1:3: expected a feature as index:value, got '3'");
  EXPECT_EQ(sparse_fault("1 a:3\n"), "1:3: expected a feature as index:value, got 'a:3'");
  EXPECT_EQ(sparse_fault("x 1:3\n"), "1:1: expected a label, got 'x'");
  EXPECT_EQ(sparse_fault("inf 1:3\n"), "1:1: expected a label that is finite, got 'inf'");
  EXPECT_EQ(sparse_fault("1 1:3 qid:4\n1 1:2x\n"), "2:6: expected a blank behind the feature value, got 'x'");
  EXPECT_EQ(sparse_fault("1,2 1:3\n"), "1:2: expected a blank behind the label, got ',2'");
  EXPECT_EQ(sparse_fault(""), " expected sparse rows, got an empty file");
  EXPECT_EQ(sparse_fault("# x\n"), " expected sparse rows, got only comments and blank lines");
}

TEST_F(Tables, labels_are_recognised) {
  const auto kind = [](std::vector<double> labels) { return recognise_labels(labels).describe(); };
  EXPECT_EQ(kind({1, -1, 1}), "-1/1");
  EXPECT_EQ(kind({1, 0, 1}), "0/1");
  EXPECT_EQ(kind({1, 2, 3, 2}), "1..3");
  EXPECT_EQ(kind({1, 3}), "real") << "class 2 is missing";
  EXPECT_EQ(kind({0.5, 1}), "real");
  EXPECT_EQ(kind({1e300, 1}), "real");
  EXPECT_EQ(kind({}), "real");
}

TEST_F(Tables, all_readers_give_the_same_whatever_the_pieces_and_threads) {
  std::string svm, csv, graph;
  std::mt19937 random(9);
  for (int i = 0; i < 200; ++i) {
    svm += std::to_string(i % 5) + " " + std::to_string(1 + random() % 9) + ":1.5 " +
           std::to_string(20 + random() % 9) + ":-2\n";
    csv += std::to_string(random() % 100) + "," + std::to_string(static_cast<double>(random() % 1000) * 0.01) + "\n";
    graph += std::to_string(random() % 90) + "\t" + std::to_string(random() % 90) + "\n";
    if (i % 13 == 0) svm += "# comment\n", csv += "\n", graph += "# comment\n";
  }
  for (const bool packed : {false, true}) {
    const auto pack = [&](const std::string& text) { return packed ? gzip(text) : text; };
    const std::uint64_t sparse_sum = sparse(pack(svm)).checksum, dense_sum = dense(pack(csv)).checksum;
    const EdgeData edges = read_edges(file("g", pack(graph)));
    for (const ReadOptions& way : ways_to_read()) {
      ASSERT_EQ(sparse(pack(svm), way).checksum, sparse_sum);
      ASSERT_EQ(dense(pack(csv), "", way).checksum, dense_sum);
      ASSERT_EQ(read_edges(path("g"), way).edges, edges.edges);
    }
  }
}

TEST_F(Tables, csv_means_the_same_with_any_separator_and_header) {
  const DenseData plain = dense("1,2.5\n-3,4e2\n");
  EXPECT_THAT(plain.matrix.values, ElementsAre(1, 2.5, -3, 400));
  EXPECT_EQ(plain.matrix.columns, 2U);
  for (const char* other : {"a,b\n1,2.5\n-3,4e2\n", "1;2.5\n-3;4e2\n", "1\t2.5\n-3\t4e2\n", "1 2.5\n -3   4e2 \n",
                            "# c\n1 , 2.5\r\n-3 ,4e2\n", "\"a\";\"b b\"\n\n1;2.5\n-3;4e2"}) {
    EXPECT_EQ(dense(other).matrix.values, plain.matrix.values) << other;
    EXPECT_EQ(dense(other).checksum, plain.checksum) << other;
  }
  EXPECT_THAT(dense("\"a\";\"b b\"\n# c\n1;2.5\n").column_names, ElementsAre("a", "b b"));
  EXPECT_THAT(dense("7\n8\n").matrix.values, ElementsAre(7, 8)) << "one column";
}

TEST_F(Tables, csv_gives_up_a_label_column_by_name_or_number) {
  for (const char* label : {"y", "2", "-2"}) {
    const DenseData data = dense("x,y,z\n1,2,3\n4,1,6\n", label);
    EXPECT_THAT(data.label_values, ElementsAre(2, 1)) << label;
    EXPECT_THAT(data.matrix.values, ElementsAre(1, 3, 4, 6));
    EXPECT_THAT(data.column_names, ElementsAre("x", "z"));
    EXPECT_EQ(data.labels.describe(), "1..2");
  }
  for (const char* label : {"w", "0", "4", "-4"}) {
    EXPECT_THAT(error_of([&] { dense("x,y,z\n1,2,3\n", label); }, ErrorKind::usage), HasSubstr("no label column"));
  }
}

TEST_F(Tables, csv_names_every_bad_field) {
  EXPECT_EQ(dense_fault("1,2\n3\n"), "2:2: expected a number in column 2, got nothing");
  EXPECT_EQ(dense_fault("1,2\n3,4,5\n"), "2:5: expected the end of the line after 2 columns, got '5'");
  EXPECT_EQ(dense_fault("1,2\n3,?\n"), "2:3: expected a number in column 2, got '?'");
  EXPECT_EQ(dense_fault("1,2\n3,4x\n"), "2:3: expected a number in column 2, got '4x'");
  EXPECT_EQ(dense_fault("1,2\n,4\n"), "2:1: expected a number in column 1, got nothing");
  EXPECT_EQ(dense_fault("1,2\n3,nan\n"), "2:3: expected a number that is finite in column 2, got 'nan'");
  EXPECT_EQ(dense_fault("1,2\n3,1e999\n"),
            "2:3: expected a number that the number type can hold in column 2, got '1e999'");
  EXPECT_EQ(dense_fault("1 2\n3 4 5\n"), "2:5: expected the end of the line after 2 columns, got '5'");
  EXPECT_EQ(dense_fault(""), " expected data, got an empty file");
}

std::string npy(const std::string& header, const std::string& payload, char version = 1) {
  std::string text = std::string("\x93NUMPY") + version + '\0';
  const std::size_t size = header.size();
  text += static_cast<char>(size & 0xff);
  text += static_cast<char>(size >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + payload;
}

template <class T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_F(Tables, npy_of_every_accepted_type_order_and_version_is_read) {
  const std::string tail = ", 'fortran_order': False, 'shape': (2, 3), }\n";
  const auto values = [&](const std::string& content) { return dense(content).matrix.values; };
  const std::vector<double> expected = {1, 2, 3, 4, 5, 6};
  for (const char version : {'\x01', '\x02', '\x03'}) {
    EXPECT_EQ(values(npy("{'descr': '<f4'" + tail, bytes_of<float>({1, 2, 3, 4, 5, 6}), version)), expected);
  }
  EXPECT_EQ(values(npy("{'descr': '<f8'" + tail, bytes_of<double>({1, 2, 3, 4, 5, 6}))), expected);
  EXPECT_EQ(values(npy("{'descr': '<i4'" + tail, bytes_of<std::int32_t>({1, 2, 3, 4, 5, 6}))), expected);
  EXPECT_EQ(values(gzip(npy("{'descr': '<i8'" + tail, bytes_of<std::int64_t>({1, 2, 3, 4, 5, 6})))), expected);
  EXPECT_EQ(
      values(npy("{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f8\"}", bytes_of<double>({1, 4, 2, 5, 3, 6}))),
      expected);
  const DenseData vector =
      dense(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", bytes_of<double>({1, 2, 3})));
  EXPECT_EQ(vector.matrix.rows, 3U);
  EXPECT_EQ(vector.matrix.columns, 1U);
  write_npy<double>(path("own.npy"), expected, {3, 2});
  EXPECT_EQ(read_dense(path("own.npy")).matrix.values, expected);
}

TEST_F(Tables, npy_that_is_foreign_cut_or_lying_is_refused_with_the_reason) {
  const std::string good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n";
  const std::string payload(48, '\0');
  const auto fault_of = [&](const std::string& content) { return dense_fault(content); };
  EXPECT_THAT(fault_of(npy("{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }", payload)),
              HasSubstr("got '>f8'"));
  EXPECT_THAT(fault_of(npy("{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3), }", payload)),
              HasSubstr("got '<c16'"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 1), }", payload)),
              HasSubstr("rank 1 or 2"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", payload)),
              HasSubstr("rank 1 or 2"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f8', 'fortran_order': False}", payload)), HasSubstr("the keys"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f8", payload)), HasSubstr("closing quote"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f8', 'fortran_order': Maybe", payload)), HasSubstr("True or False"));
  EXPECT_THAT(fault_of(npy(good, payload.substr(1))), HasSubstr("ends inside its values"));
  EXPECT_THAT(fault_of(npy(good, payload + "x")), HasSubstr("bytes behind the last value"));
  EXPECT_THAT(fault_of(npy(good, payload, 4)), HasSubstr("got version 4"));
  EXPECT_THAT(fault_of(npy(good, payload).substr(0, 20)), HasSubstr("ends inside the .npy header"));
  EXPECT_THAT(fault_of(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12) + payload), HasSubstr("at most 1 MiB"));
  EXPECT_THAT(fault_of(npy(good, bytes_of<double>({1, 2, 3, 4, std::nan(""), 6}))),
              HasSubstr("row 2, column 2: expected a finite number"));
  for (const char* shape : {"(99999999999, 999999999999)", "(4000000000, 4)", "(18446744073709551615,)", "(0, 3)"}) {
    const std::string message =
        fault_of(npy(std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ") + shape + "}", payload));
    EXPECT_TRUE(message.find("ends inside its values") != std::string::npos ||
                message.find("empty array") != std::string::npos)
        << message;
  }
}

TEST_F(Tables, edges_are_numbered_by_ascending_node) {
  const EdgeData data = read_edges(file("f", "# SNAP\n30\t7\n7 7\n18446744073709551615 30\n"));
  EXPECT_THAT(data.nodes.texts(), ElementsAre("7", "30", "18446744073709551615"));
  EXPECT_THAT(data.edges, ElementsAre(Edge{1, 0}, Edge{0, 0}, Edge{2, 1}));
  EXPECT_EQ(data.self_loops, 1U);
  EXPECT_EQ(count_repeated_edges({{1, 2}, {2, 1}, {1, 2}, {1, 2}}), 2U);
}

TEST_F(Tables, edges_are_the_same_whether_ids_are_dense_or_wide) {
  std::mt19937 random(3);
  std::string dense_text, wide_text;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t source = random() % 700, target = random() % 700;
    dense_text += std::to_string(source) + " " + std::to_string(target) + "\n";
    wide_text += std::to_string(source * 9999999999) + " " + std::to_string(target * 9999999999) + "\n";
  }
  const EdgeData dense_ids = read_edges(file("d", dense_text));
  file("w", wide_text);
  for (const ReadOptions& way : ways_to_read()) {
    const EdgeData wide_ids = read_edges(path("w"), way);
    ASSERT_EQ(wide_ids.edges, dense_ids.edges);
    ASSERT_EQ(wide_ids.nodes.size(), dense_ids.nodes.size());
    ASSERT_EQ(wide_ids.self_loops, dense_ids.self_loops);
  }
}

TEST_F(Tables, edges_names_every_bad_line) {
  EXPECT_EQ(edge_fault("1 2\n3\n"), "2:2: expected a target node (an integer below 2^64), got nothing");
  EXPECT_EQ(edge_fault("1 2\n3 4 5\n"), "2:5: expected the end of the line after 2 columns, got '5'");
  EXPECT_EQ(edge_fault("1 2\n3 x\n"), "2:3: expected a target node (an integer below 2^64), got 'x'");
  EXPECT_EQ(edge_fault("-1 2\n"), "1:1: expected a source node (an integer below 2^64), got '-1'");
  EXPECT_EQ(edge_fault("1 18446744073709551616\n"),
            "1:3: expected a target node (an integer below 2^64), got '18446744073709551616'");
  EXPECT_EQ(edge_fault("1 2.5\n"), "1:3: expected a target node (an integer below 2^64), got '2.5'");
  EXPECT_EQ(edge_fault(""), " expected edges, got an empty file");
  EXPECT_EQ(edge_fault("# x\n"), " expected edges, got only comments and blank lines");
}

}  // namespace
}  // namespace orrery::testing
