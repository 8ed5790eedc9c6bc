// What the tests of the Lasso share: problems with a known answer, written to a file and trained on.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/random.h"
#include "tests/algorithms/lasso_oracle.h"
#include "tests/algorithms/linear_fixture.h"

namespace orrery {

struct LassoProblem {
  std::size_t rows = 60, columns = 30;
  double filled = 1;       ///< share of entries that are not 0
  double correlation = 0;  ///< of neighbouring columns
  double offset = 0;       ///< added to every value that is not 0
  std::uint64_t seed = 3;
  double noise = 0.5;  ///< standard deviation
};

class LassoTest : public LinearTest {
 protected:
  LassoTest() : LinearTest("lasso") {}

  static lasso::Oracle make(const LassoProblem& shape) {
    const Random random(shape.seed, Purpose::test);
    lasso::Oracle oracle;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      RandomStream draw = random.stream(0, i);
      std::vector<double> x(shape.columns, 0.0);
      double y = 0.7, before = draw.normal();
      for (std::size_t j = 0; j < shape.columns; ++j) {
        before = shape.correlation * before + std::sqrt(1 - shape.correlation * shape.correlation) * draw.normal();
        if (draw.uniform() >= shape.filled) continue;
        x[j] = static_cast<double>(static_cast<float>((1.0 + static_cast<double>(j % 4)) * before + shape.offset));
        y += x[j] * (j % 5 == 0 ? 1.0 : j % 5 == 2 ? -0.6 : 0.0);
      }
      oracle.x.push_back(x);
      oracle.y.push_back(y + shape.noise * draw.normal());
    }
    return oracle;
  }

  void write_rows(const std::string& name, const lasso::Oracle& oracle) const {
    std::ofstream file(path(name));
    file.precision(17);
    for (std::size_t i = 0; i < oracle.rows(); ++i) {
      file << oracle.y[i];
      for (std::size_t j = 0; j < oracle.columns(); ++j) {
        if (oracle.x[i][j] != 0) file << ' ' << j + 1 << ':' << oracle.x[i][j];
      }
      file << '\n';
    }
  }

  lasso::Oracle write_rows(const LassoProblem& shape) const {
    const lasso::Oracle oracle = make(shape);
    write_rows("rows", oracle);
    return oracle;
  }

  static Job job(Params params = {}) {
    Job made = LinearTest::job(std::move(params));
    made.stop.iterations = 100000;
    made.stop.tolerance = 1e-12;
    return made;
  }

  static std::string text(double value) {
    std::ostringstream out;
    out.precision(17);
    out << value;
    return out.str();
  }

  std::vector<double> weights(const std::string& run = "run") const {
    return ModelReader(path(run)).read<double>("weights");
  }
  double constant(std::size_t which) const { return ModelReader(path("run")).read<double>("constants")[which]; }

  void expect_weights(const lasso::Oracle::Solution& wanted, const std::string& what, double within = 1e-6) const {
    const std::vector<double> found = weights();
    ASSERT_EQ(found.size(), wanted.weights.size()) << what;
    for (std::size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], wanted.weights[j], within) << what << ' ' << j;
    EXPECT_NEAR(constant(0), wanted.intercept, within) << what;
  }
};

}  // namespace orrery
