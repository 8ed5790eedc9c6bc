#include "tools/profile_page.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/phase_report.h"
#include "tools/profile_report.h"
#include "tools/train_observer.h"

namespace orrery::tools {
namespace {

constexpr std::size_t kMostRows = 64;     // of a chart; the table beside it has all
constexpr std::size_t kMostColumns = 60;  // what is more is put together
constexpr double kBins = 240;             // of a timeline
constexpr double kLeft = 12;              // percent of the width that labels take in timelines

// Text keeps its size on narrow screens because all that is horizontal in a chart is in percent of its width.
constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--card:#f6f8fa;--bar:#2f6fb0;--mark:#b3261e;
--a0:#2f6fb0;--a1:#1a7f5a;--a2:#c2571a;--a3:#7a4fb5;--a4:#b3261e;--a5:#8c959f}
@media (prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e6e9ed;--soft:#a3adb8;--line:#3a424b;--card:#1e2329;--bar:#6cabe6;--mark:#ff8a80;
--a0:#6cabe6;--a1:#4cc38a;--a2:#f0975a;--a3:#b794f0;--a4:#ff8a80;--a5:#7d8792}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}h2{font-size:1.25rem;margin:2rem 0 .5rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1.05rem;margin:1.5rem 0 .5rem}p{margin:.5rem 0;max-width:60rem}code{overflow-wrap:anywhere}
.soft{color:var(--soft)}nav a{display:inline-block;margin-right:1rem;padding:.25rem 0}a{color:var(--bar)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(16rem,1fr));gap:.75rem;padding:0;list-style:none}
.cards li{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.75rem}
.cards b{display:block;text-transform:capitalize}
figure{margin:1rem 0;min-width:0}figcaption{font-weight:600;margin-bottom:.25rem}
svg{display:block;width:100%}svg text{fill:var(--ink);font:13px system-ui,sans-serif}svg .soft{fill:var(--soft)}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:0 2rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:.25rem 0;padding:0;list-style:none;font-size:.875rem}
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border-radius:2px}
.scroll{overflow-x:auto;max-height:24rem;overflow-y:auto}summary{cursor:pointer;color:var(--soft);font-size:.875rem;padding:.25rem 0}
table{border-collapse:collapse;font-size:.875rem}th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;white-space:nowrap}
th:first-child,td:first-child,td.text,th.text{text-align:left}td.text{white-space:normal;min-width:14rem}th{color:var(--soft);font-weight:600}
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

double number(const Json& value) { return value.get<double>(); }
std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }
std::string percent(double value) { return fixed_text(value, 3) + "%"; }
std::string pixels(double value) { return fixed_text(value, 1); }

using Cells = std::vector<std::string>;

/// The first row is the head. Cells of column `text_columns` and beyond are text.
std::string table(const std::string& caption, const std::vector<Cells>& rows, std::size_t text_columns = SIZE_MAX) {
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + escaped(caption) + "\"><table>";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    out += "<tr>";
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const std::string kind = c >= text_columns ? " class=\"text\"" : "";
      const std::string tag = r == 0 ? "th" : "td";
      out += "<" + tag + (r == 0 ? " scope=\"col\"" : "") + kind + ">" + escaped(rows[r][c]) + "</" + tag + ">";
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

struct Bar {
  std::string label, value;
  double size;
};

class Page {
 public:
  explicit Page(const Json& report) : report_(report) {}

  std::string build() {
    head();
    recommendations();
    time();
    for (const Json& of_table : report_["tables"]) table_section(of_table);
    blocks();
    about();
    return out_ + "</main></body></html>\n";
  }

 private:
  // --- charts --------------------------------------------------------------------------------------------------------

  /// `numbers`: the table with what the chart shows.
  void figure(const std::string& title, const std::string& description, double height, const std::string& body,
              const std::string& numbers, const std::string& legend = {}) {
    const std::string id = "chart" + std::to_string(++charts_);
    out_ += "<figure><figcaption>" + escaped(title) + "</figcaption>" + legend +
            "<svg role=\"img\" aria-labelledby=\"" + id + "-title " + id + "-desc\" height=\"" + pixels(height) +
            "\"><title id=\"" + id + "-title\">" + escaped(title) + "</title><desc id=\"" + id + "-desc\">" +
            escaped(description) + "</desc>\n" + body + "</svg><details><summary>Numbers</summary>" + numbers +
            "</details></figure>\n";
  }

  static std::string rectangle(double x, double y, double width, double height, const std::string& fill) {
    return "<rect x=\"" + percent(x) + "\" y=\"" + pixels(y) + "\" width=\"" + percent(width) + "\" height=\"" +
           pixels(height) + "\" style=\"fill:var(--" + fill + ")\"/>\n";
  }
  static std::string label(double x, double y, const std::string& text, const char* more = "") {
    return "<text x=\"" + percent(x) + "\" y=\"" + pixels(y) + "\"" + more + ">" + escaped(text) + "</text>\n";
  }

  /// A bar below each label.
  void bars(const std::string& title, const std::string& description, const std::vector<Bar>& all,
            const std::string& numbers) {
    constexpr double kStep = 36;
    if (all.empty()) return;
    double most = 0;
    for (const Bar& bar : all) most = std::max(most, bar.size);
    std::string body;
    const std::size_t shown = std::min(all.size(), kMostRows);
    for (std::size_t i = 0; i < shown; ++i) {
      const double y = kStep * static_cast<double>(i);
      body += label(0, y + 14, all[i].label) + label(100, y + 14, all[i].value, " text-anchor=\"end\" class=\"soft\"");
      body += rectangle(0, y + 19, most > 0 ? 100 * all[i].size / most : 0, 10, "bar");
    }
    figure(title, description, kStep * static_cast<double>(shown), body, numbers);
  }

  struct Mark {
    std::size_t after;  ///< columns
    std::string name;
  };
  /// Upright columns of `parts` on top of each other, each in its colour; marks between them.
  void columns(const std::string& title, const std::string& description, const std::vector<Cells>& ends,
               const std::vector<std::vector<double>>& parts, const std::vector<std::string>& fills,
               const std::vector<Mark>& marks, const std::string& most_text, const std::string& numbers,
               const std::string& legend = {}) {
    constexpr double kTop = 40, kHeight = 150, kBottom = 20;
    double most = 0;
    for (const auto& column : parts) {
      double sum = 0;
      for (const double part : column) sum += part;
      most = std::max(most, sum);
    }
    const double width = 100 / static_cast<double>(std::max<std::size_t>(1, parts.size()));
    std::string body = label(0, 13, most_text, " class=\"soft\"");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      double y = kTop + kHeight;
      for (std::size_t p = 0; p < parts[i].size(); ++p) {
        const double height = most > 0 ? kHeight * parts[i][p] / most : 0;
        y -= height;
        body += rectangle(width * (static_cast<double>(i) + 0.08), y, width * 0.84, height, fills[p]);
      }
    }
    for (const Mark& mark : marks) {
      const double x = width * static_cast<double>(mark.after);
      body += "<line x1=\"" + percent(x) + "\" x2=\"" + percent(x) + "\" y1=\"" + pixels(kTop - 6) + "\" y2=\"" +
              pixels(kTop + kHeight) + "\" style=\"stroke:var(--mark);stroke-width:2\"/>\n";
      body += label(x, kTop - 10, mark.name, x > 90 ? " text-anchor=\"end\"" : x > 10 ? " text-anchor=\"middle\"" : "");
    }
    if (!ends.empty()) {
      body += label(0, kTop + kHeight + 15, ends[0][0], " class=\"soft\"");
      body += label(100, kTop + kHeight + 15, ends[0][1], " text-anchor=\"end\" class=\"soft\"");
    }
    figure(title, description, kTop + kHeight + kBottom, body, numbers, legend);
  }

  static std::string legend(const std::vector<std::pair<std::string, std::string>>& entries) {
    std::string out = "<ul class=\"legend\">";
    for (const auto& [fill, name] : entries) {
      out += "<li><i style=\"background:var(--" + fill + ")\"></i>" + escaped(name) + "</li>";
    }
    return out + "</ul>";
  }
  static std::string activity_legend() {
    std::vector<std::pair<std::string, std::string>> entries;
    for (std::size_t a = 0; a < kActivities; ++a) {
      entries.emplace_back("a" + std::to_string(a), to_string(static_cast<Activity>(a)));
    }
    return legend(entries);
  }

  // --- sections ------------------------------------------------------------------------------------------------------

  void head() {
    const Json& run = report_["run"];
    const std::string name = text_of(run["algorithm"]);
    out_ =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\"><title>Profile of " +
        escaped(name) + "</title><style>" + kStyle + "</style></head>\n<body><main>\n<h1>Profile of " + escaped(name) +
        "</h1>\n";
    out_ += "<p class=\"soft\">Schedule " + escaped(text_of(run["schedule"])) + ", " + text_of(run["workers"]) +
            " workers on " + text_of(report_["threads"]) + " threads in " + text_of(report_["domains"]) + " domains, " +
            escaped(text_of(run["consistency"])) + " with staleness " + text_of(run["staleness"]) + ", access plan " +
            (report_["plan"].get<bool>() ? "on" : "off") + "; " + text_of(run["result"]["iterations"]) +
            " iterations in " + seconds_text(number(report_["phases"]["seconds"])) + ".</p>\n";
    out_ += "<nav aria-label=\"Sections\"><a href=\"#recommendations\">Recommendations</a><a href=\"#time\">Time</a>";
    for (const Json& of_table : report_["tables"]) {
      const std::string title = escaped(text_of(of_table["name"]));
      out_ += "<a href=\"#table-" + title + "\">Table " + title + "</a>";
    }
    if (!report_["blocks"].is_null()) out_ += "<a href=\"#blocks\">Blocks</a>";
    out_ += "<a href=\"#run\">Run</a></nav>\n";
  }

  void recommendations() {
    out_ += "<h2 id=\"recommendations\">Recommendations</h2>\n<ul class=\"cards\">\n";
    for (const Json& advice : report_["recommendations"]) {
      out_ += "<li><b>" + escaped(text_of(advice["about"])) + "</b>" + escaped(text_of(advice["what"])) +
              "<br><span class=\"soft\">Because " + escaped(text_of(advice["evidence"])) + ".</span></li>\n";
    }
    out_ += "</ul>\n";
  }

  void time() {
    out_ += "<h2 id=\"time\">Where time goes</h2>\n";
    const Json& phases = report_["phases"];
    out_ += "<p>Threads were busy for " +
            share_text(number(phases["busy_thread_seconds"]), number(phases["thread_seconds"])) + " of " +
            seconds_text(number(phases["seconds"])) +
            " of training. With more workers than threads, most of a worker's time is waiting for a thread: that is "
            "no loss, as long as threads are busy.</p>\n<div class=\"two\">\n";
    std::vector<Bar> sums;
    std::vector<Cells> numbers{{"Activity", "Seconds of workers"}};
    for (const auto& [name, seconds] : phases["worker_seconds"].items()) {
      sums.push_back({name, seconds_text(number(seconds)), number(seconds)});
      numbers.push_back({name, fixed_text(number(seconds), 6)});
    }
    bars("Time of workers by activity", "One bar for each activity, as long as the time all workers spent on it.", sums,
         table("Time of workers by activity", numbers));
    iterations();
    out_ += "</div>\n";
    worker_times();
    for (const Json& window : report_["timeline"]) timeline(window);
    first_against_later();
  }

  /// Sums of `keys` over neighbouring entries, so many that at most kMostColumns are left.
  static std::vector<std::vector<double>> put_together(const Json& entries, const std::vector<const char*>& keys) {
    const std::size_t each = (entries.size() + kMostColumns - 1) / kMostColumns;
    std::vector<std::vector<double>> out;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i % each == 0) out.emplace_back(keys.size(), 0.0);
      for (std::size_t k = 0; k < keys.size(); ++k) out.back()[k] += number(entries[i][keys[k]]);
    }
    return out;
  }

  void iterations() {
    const Json& clocks = report_["clocks"];
    if (clocks.empty()) return;
    std::vector<Cells> numbers{
        {"Clock", "Iteration", "Seconds", "Compute", "Longest", "Shortest", "Flush", "Settle", "Commit"}};
    double most = 0;
    for (const Json& clock : clocks) {
      Cells cells{text_of(clock["clock"]), text_of(clock["iteration"])};
      for (const char* key : {"seconds", "compute", "longest", "shortest", "flush", "settle", "commit"}) {
        cells.push_back(seconds_text(number(clock[key])));
      }
      numbers.push_back(cells);
    }
    const auto parts = put_together(clocks, {"seconds"});
    for (const auto& part : parts) most = std::max(most, part[0]);
    columns("Time of each clock", "A column for each clock, or some clocks, in order; as high as the time it took.",
            {{"clock " + text_of(clocks.front()["clock"]), "clock " + text_of(clocks.back()["clock"])}}, parts, {"bar"},
            {}, "highest: " + seconds_text(most), table("Time of each clock", numbers));
  }

  void worker_times() {
    const Json& workers = report_["phases"]["workers"];
    constexpr double kStep = 20;
    std::vector<Cells> numbers{{"Worker", "Domain", "Units"}};
    for (std::size_t a = 0; a < kActivities; ++a) numbers[0].push_back(to_string(static_cast<Activity>(a)));
    std::string body;
    double most = 0;
    for (const Json& worker : workers) most = std::max(most, sum_of(worker));
    for (std::size_t w = 0; w < workers.size(); ++w) {
      Cells cells{text_of(workers[w]["worker"]), text_of(workers[w]["domain"]), text_of(workers[w]["units"])};
      double x = kLeft;
      const double y = kStep * static_cast<double>(w);
      if (w < kMostRows) body += label(0, y + 13, text_of(workers[w]["worker"]));
      for (std::size_t a = 0; a < kActivities; ++a) {
        const double seconds = number(workers[w][to_string(static_cast<Activity>(a))]);
        cells.push_back(seconds_text(seconds));
        const double width = most > 0 ? (100 - kLeft) * seconds / most : 0;
        if (w < kMostRows && width > 0) body += rectangle(x, y + 2, width, 14, "a" + std::to_string(a));
        x += width;
      }
      numbers.push_back(cells);
    }
    figure("Time of each worker", "A bar for each worker, by number, of what it spent its time on.",
           kStep * static_cast<double>(std::min(workers.size(), kMostRows)), body,
           table("Time of each worker", numbers), activity_legend());
  }
  static double sum_of(const Json& worker) {
    double sum = 0;
    for (std::size_t a = 0; a < kActivities; ++a) sum += number(worker[to_string(static_cast<Activity>(a))]);
    return sum;
  }

  void timeline(const Json& window) {
    constexpr double kStep = 18;
    const Json& workers = window["workers"];
    const double seconds = number(window["end"]) - number(window["start"]);
    std::vector<Cells> numbers{{"Worker"}};
    for (std::size_t a = 0; a < kActivities; ++a) numbers[0].push_back(to_string(static_cast<Activity>(a)));
    std::string body;
    for (std::size_t w = 0; w < workers.size(); ++w) {
      const double y = kStep * static_cast<double>(w);
      if (w < kMostRows) body += label(0, y + 12, text_of(workers[w]["worker"]));
      std::vector<double> bins(kActivities, 0);
      for (const Json& stretch : workers[w]["stretches"]) {
        const auto activity = stretch[0].get<std::size_t>();
        bins[activity] += number(stretch[2]);
        if (w >= kMostRows) continue;
        body += rectangle(kLeft + (100 - kLeft) * number(stretch[1]) / kBins, y + 2,
                          (100 - kLeft) * number(stretch[2]) / kBins, 13, "a" + std::to_string(activity));
      }
      Cells cells{text_of(workers[w]["worker"])};
      for (const double count : bins) cells.push_back(share_text(count, kBins));
      numbers.push_back(cells);
    }
    const double height = kStep * static_cast<double>(std::min(workers.size(), kMostRows));
    body += label(kLeft, height + 14, seconds_text(number(window["start"])), " class=\"soft\"");
    body += label(100, height + 14, seconds_text(number(window["end"])), " text-anchor=\"end\" class=\"soft\"");
    const std::string title = "Timeline of " + text_of(window["name"]);
    figure(title,
           "A row for each worker, by number; time runs to the right over " + seconds_text(seconds) +
               ". Each 240th part has the colour of what most of it went to.",
           height + 20, body, table(title, numbers), activity_legend());
  }

  void first_against_later() {
    const Json& change = report_["first_against_later"];
    if (change.is_null()) return;
    out_ += "<h3>The first iteration against later ones</h3>\n";
    for (const Json& of : report_["tables"]) {
      if (of["plan"].empty()) continue;
      const Json &first = of["plan"].front(), &last = of["plan"].back();
      out_ += "<p>Table " + escaped(text_of(of["name"])) + ": the plan missed " +
              share_text(number(first["misses"]), number(first["adds"])) + " of the adds at first, " +
              share_text(number(last["misses"]), number(last["adds"])) + " at last.</p>\n";
    }
    std::vector<Cells> numbers{{"Phase", "First", "Later (median)", "Later / first"}};
    for (const char* phase : {"seconds", "compute", "flush", "settle", "commit"}) {
      const double first = number(change[phase]["first"]), later = number(change[phase]["later_median"]);
      const std::string name = phase == std::string{"seconds"} ? "whole iteration" : phase;
      numbers.push_back({name, seconds_text(first), seconds_text(later), share_text(later, first)});
    }
    out_ += table("The first iteration against later ones", numbers);
  }

  void table_section(const Json& of) {
    const std::string name = text_of(of["name"]);
    const Json& whole = of["whole_run"];
    out_ += "<h2 id=\"table-" + escaped(name) + "\">Table " + escaped(name) + "</h2>\n<p>" +
            count_text(number(of["rows"])) + " rows of " + text_of(of["width"]) + " values, " +
            bytes_text(number(of["row_bytes"])) + " with their state. In the whole run " +
            count_text(number(whole["reads"])) + " reads and " + count_text(number(whole["adds"])) + " adds; " +
            share_text(number(whole["misses"]), number(whole["adds"])) +
            " of the adds missed the plan, those of the first clock included. Workers' plans have " +
            count_text(number(whole["slots"])) + " slots; " + text_of(whole["workers_given_up"]) +
            " workers were left unplanned because they do not repeat.</p>\n";
    const Json& recorded = report_["recorded"];
    out_ += "<p class=\"soft\">What follows is from the record of the first " + text_of(recorded["iterations"]) +
            " iterations (" + count_text(number(recorded["accesses"])) + " accesses, " +
            text_of(recorded["bytes_per_access"]) + " bytes each" +
            (recorded["cut"].get<bool>() ? "; cut, because the memory was full" : "") + ").</p>\n";
    classes(of);
    out_ += "<div class=\"two\">\n";
    sharing(of, "by_workers_that_touch", "workers", "Rows by how many workers touch them");
    sharing(of, "by_domains_that_touch", "domains", "Rows by how many domains touch them");
    workers(of);
    hot(of);
    reuse(of);
    plan(of);
    staleness(of);
    out_ += "</div>\n";
    repetition(of);
    between_domains(of);
    between_nodes(of);
  }

  void classes(const Json& of) {
    out_ += "<h3>Classes of rows, and how each is served</h3>\n";
    std::vector<Cells> rows{{"Rows", "Touched", "Reads", "Adds", "Slots", "Policy", "Reason"}};
    for (const Json& one : of["classes"]) {
      rows.push_back({text_of(one["class"]), count_text(number(one["rows"])), count_text(number(one["reads"])),
                      count_text(number(one["adds"])), count_text(number(one["slots"])), text_of(one["policy"]),
                      text_of(one["reason"])});
    }
    out_ += table("Classes of rows", rows, 5);
  }

  void sharing(const Json& of, const char* list, const char* key, const std::string& title) {
    std::vector<Bar> all;
    std::vector<Cells> numbers{{key, "Rows", "Reads", "Adds"}};
    for (const Json& one : of[list]) {
      const std::string count = text_of(one[key]);
      const std::string what = count == "1" ? std::string(key).substr(0, std::string(key).size() - 1) : key;
      all.push_back({count + " " + what, count_text(number(one["rows"])) + " rows", number(one["rows"])});
      numbers.push_back({count, text_of(one["rows"]), text_of(one["reads"]), text_of(one["adds"])});
    }
    bars(title, "One bar for each number of " + std::string(key) + ", as long as there are rows that so many touch.",
         all, table(title, numbers));
  }

  void workers(const Json& of) {
    std::vector<Bar> all;
    std::vector<Cells> numbers{{"Worker", "Domain", "Rows", "Reads", "Adds"}};
    for (const Json& one : of["by_worker"]) {
      const double accesses = number(one["reads"]) + number(one["adds"]);
      all.push_back({"worker " + text_of(one["worker"]) + ", domain " + text_of(one["domain"]),
                     count_text(accesses) + ", " + count_text(number(one["rows"])) + " rows", accesses});
      numbers.push_back({text_of(one["worker"]), text_of(one["domain"]), text_of(one["rows"]), text_of(one["reads"]),
                         text_of(one["adds"])});
    }
    bars("Accesses of each worker", "One bar for each worker, as long as its reads and adds together.", all,
         table("Accesses of each worker", numbers));
  }

  void hot(const Json& of) {
    std::vector<Bar> all;
    std::vector<Cells> numbers{{"Row", "Reads", "Adds", "Workers", "Writers", "Domains"}};
    for (const Json& one : of["hot_rows"]) {
      const double accesses = number(one["reads"]) + number(one["adds"]);
      all.push_back(
          {"row " + text_of(one["row"]), count_text(accesses) + ", " + text_of(one["workers"]) + " workers", accesses});
      numbers.push_back({text_of(one["row"]), text_of(one["reads"]), text_of(one["adds"]), text_of(one["workers"]),
                         text_of(one["writers"]), text_of(one["domains"])});
    }
    bars("Hot rows", "The rows with the most accesses; a bar as long as their number.", all,
         table("Hot rows", numbers));
  }

  void reuse(const Json& of) {
    const Json& found = of["reuse"];
    if (number(found["accesses"]) == 0) return;
    std::vector<std::vector<double>> parts;
    std::vector<Cells> numbers{{"Other rows between, below", "Their bytes", "Accesses", "Share"}};
    for (const Json& bucket : found["by_distance"]) {
      parts.push_back({number(bucket["accesses"])});
      numbers.push_back({text_of(bucket["rows_below"]), bytes_text(number(bucket["bytes_below"])),
                         text_of(bucket["accesses"]),
                         share_text(number(bucket["accesses"]), number(found["accesses"]))});
    }
    numbers.push_back({"first touch", "", text_of(found["first_touches"]),
                       share_text(number(found["first_touches"]), number(found["accesses"]))});
    std::vector<Mark> marks;
    std::string served;
    for (const Json& level : found["served_by"]) {
      const double rows = number(level["rows"]);
      const auto after = static_cast<std::size_t>(rows > 0 ? std::ceil(std::log2(rows)) + 1 : 0);
      served += (served.empty() ? "" : ", ") + text_of(level["cache"]) + " " +
                share_text(number(level["accesses"]), number(found["accesses"]));
      if (rows > 0 && after <= parts.size()) marks.push_back({after, text_of(level["cache"])});
    }
    double most = 0;
    for (const auto& part : parts) most = std::max(most, part[0]);
    columns("How soon a worker comes back to a row",
            "Columns from soon to late: how many other rows a worker touches between two accesses to a row, in powers "
            "of two; marks where a cache level is full. Served by caches: " +
                served + ".",
            {{"at once",
              "after " + bytes_text(number(
                             found["by_distance"].empty() ? Json(0) : found["by_distance"].back()["bytes_below"]))}},
            parts, {"bar"}, marks, "highest: " + count_text(most) + " accesses",
            table("How soon a worker comes back to a row", numbers),
            "<p class=\"soft\">Served by a cache of its own: " +
                escaped(served.empty() ? "sizes of caches are not known" : served) + "</p>");
    if (found["sampled"].get<bool>()) {
      out_ += "<p class=\"soft\">From the first accesses of each worker, " + count_text(number(found["accesses"])) +
              " of " + count_text(number(found["recorded"])) + ".</p>\n";
    }
  }

  void plan(const Json& of) {
    if (of["plan"].empty()) return;
    std::vector<Cells> numbers{{"Iteration", "Reads", "Adds", "Adds outside the plan", "Slots"}};
    Json entries = Json::array();
    for (const Json& one : of["plan"]) {
      numbers.push_back({text_of(one["iteration"]), text_of(one["reads"]), text_of(one["adds"]), text_of(one["misses"]),
                         text_of(one["slots"])});
      entries.push_back({{"misses", one["misses"]}, {"hits", number(one["adds"]) - number(one["misses"])}});
    }
    const std::string title = "Adds inside and outside the plan";
    const bool is_on = report_["plan"].get<bool>();
    columns(title, "A column for each evaluated iteration: adds that the plan served, on top those that missed it.",
            {{"iteration " + text_of(of["plan"].front()["iteration"]),
              "iteration " + text_of(of["plan"].back()["iteration"])}},
            put_together(entries, {"hits", "misses"}), {is_on ? "a0" : "a5", "a4"}, {}, "", table(title, numbers),
            legend({{is_on ? "a0" : "a5", is_on ? "in the plan" : "no plan"}, {"a4", "outside"}}));
  }

  void staleness(const Json& of) {
    std::vector<Bar> all;
    std::vector<Cells> numbers{{"Clocks behind", "Reads"}};
    for (const Json& one : of["staleness_of_reads"]) {
      all.push_back({text_of(one["clocks"]) + " clocks behind", count_text(number(one["reads"])) + " reads",
                     number(one["reads"])});
      numbers.push_back({text_of(one["clocks"]), text_of(one["reads"])});
    }
    bars("Staleness that reads saw",
         "One bar for each number of clocks that reads were behind their worker's; 0 is all that can be seen.", all,
         table("Staleness that reads saw", numbers));
  }

  void repetition(const Json& of) {
    if (of["repetition"].empty()) return;
    out_ += "<h3>Does it repeat?</h3>\n";
    std::vector<Cells> rows{{"Iteration", "Accesses", "Of rows of the first iteration", "In the same order"}};
    for (const Json& one : of["repetition"]) {
      rows.push_back({text_of(one["iteration"]), count_text(number(one["accesses"])),
                      share_text(number(one["known"]), number(one["accesses"])),
                      share_text(number(one["same_place"]), number(one["accesses"]))});
    }
    out_ += table("Repetition", rows);
  }

  void between_domains(const Json& of) {
    if (number(report_["domains"]) < 2) {
      out_ += "<p>Nothing crosses domains: there is one.</p>\n";
      return;
    }
    out_ += "<h3>Bytes between domains</h3>\n";
    std::vector<Cells> rows{{"Clock", "Rows added to", "Bytes", "Least"}};
    for (const Json& clock : of["between_domains"]) {
      rows.push_back({text_of(clock["clock"]), text_of(clock["rows_added_to"]), bytes_text(number(clock["bytes"])),
                      bytes_text(number(clock["least"]))});
    }
    out_ += table("Bytes between domains", rows);
  }

  void between_nodes(const Json& of) {
    if (of["between_nodes"].empty()) return;
    out_ +=
        "<h3>Bytes between nodes</h3>\n<p>What a clock would send if the same workers were on several nodes: sums to "
        "the homes of rows, and changed rows to the nodes that read them; counted from the record.</p>\n";
    std::vector<Cells> rows{{"Nodes", "Homes in ranges", "Homes by use", "Least"}};
    for (const Json& many : of["between_nodes"]) {
      rows.push_back({text_of(many["nodes"]), bytes_text(number(many["bytes_by_range"])),
                      bytes_text(number(many["bytes_by_use"])), bytes_text(number(many["least"]))});
    }
    out_ += table("Bytes between nodes", rows);
  }

  void blocks() {
    const Json& found = report_["blocks"];
    if (found.is_null()) return;
    out_ += "<h2 id=\"blocks\">Blocks</h2>\n<p>" + text_of(found["count"]) + " blocks, " +
            bytes_text(number(found["bytes"])) +
            " together. A block that goes to a worker of another domain is copied there; the least is one copy for "
            "each domain but the first in a clock: " +
            text_of(found["least_moves_of_clock"]) + " moves.</p>\n";
    std::vector<Cells> rows{{"Clock", "Visits", "To another domain", "Bytes"}};
    for (const Json& clock : found["clocks"]) {
      rows.push_back({text_of(clock["clock"]), text_of(clock["visits"]), text_of(clock["moves"]),
                      bytes_text(number(clock["bytes"]))});
    }
    const Json& clocks = found["clocks"];
    if (!clocks.empty()) {
      const auto parts = put_together(clocks, {"moves"});
      double most = 0;
      for (const auto& part : parts) most = std::max(most, part[0]);
      columns("Blocks that went to another domain", "A column for each clock, or some, as high as blocks moved.",
              {{"clock " + text_of(clocks.front()["clock"]), "clock " + text_of(clocks.back()["clock"])}}, parts,
              {"bar"}, {}, "highest: " + count_text(most) + " moves",
              table("Blocks that went to another domain", rows));
    }
    std::vector<Cells> visits{{"Block", "Bytes", "Workers"}};
    for (std::size_t d = 0; d < report_["domains"].get<std::size_t>(); ++d) {
      visits[0].push_back("Visits from domain " + std::to_string(d));
    }
    for (const Json& block : found["visits"]) {
      Cells cells{text_of(block["block"]), bytes_text(number(block["bytes"])), text_of(block["workers"])};
      for (const Json& count : block["by_domain"]) cells.push_back(text_of(count));
      visits.push_back(cells);
    }
    out_ += "<details><summary>Visits of each block</summary>" + table("Visits of each block", visits) + "</details>\n";
  }

  void about() {
    out_ += "<h2 id=\"run\">The run</h2>\n<p><code>";
    std::string command;
    for (const Json& word : report_["run"]["command"]) command += (command.empty() ? "" : " ") + text_of(word);
    out_ += escaped(command) + "</code></p>\n<ul>\n";
    for (const Json& note : report_["notes"]) out_ += "<li>" + escaped(text_of(note)) + "</li>\n";
    for (const Json& warning : report_["run"]["warnings"]) {
      out_ += "<li>Warning: " + escaped(text_of(warning)) + "</li>\n";
    }
    const Json& caches = report_["caches"];
    out_ += "<li>Caches: L1 " + bytes_text(number(caches["l1d"])) + ", L2 " + bytes_text(number(caches["l2"])) +
            ", L3 " + bytes_text(number(caches["l3"])) + " (0 B: unknown)</li>\n</ul>\n";
  }

  const Json& report_;
  std::string out_;
  int charts_ = 0;
};

}  // namespace

std::string profile_page(const Json& report) { return Page(report).build(); }

}  // namespace orrery::tools
