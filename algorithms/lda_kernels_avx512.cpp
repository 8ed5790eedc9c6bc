// Gibbs sampling kernels for AVX-512 (F, DQ, BW, VL) and FMA; see lda_kernels.inc.
#include <immintrin.h>

#include "algorithms/lda_kernels.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kLanes = 16;

struct Wide {
  __m512 v;
  static Wide zero() { return {_mm512_setzero_ps()}; }
  static Wide splat(float x) { return {_mm512_set1_ps(x)}; }
  static Wide load(const float* p) { return {_mm512_load_ps(p)}; }
  static Wide load_counts(const std::int32_t* p) { return {_mm512_maskz_cvtepi32_ps(0xFFFF, _mm512_load_si512(p))}; }
  static Wide gather(const float* base, const std::uint32_t* at) {
    return {_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xFFFF, _mm512_load_si512(at), base, 4)};
  }
  void store(float* p) const { _mm512_store_ps(p, v); }
  static Wide fma(Wide a, Wide b, Wide c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Wide operator+(Wide a, Wide b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Wide operator*(Wide a, Wide b) { return {_mm512_mul_ps(a.v, b.v)}; }
  /// Lane l becomes the sum of the lanes up to it: within each quarter, then the sums of the quarters below.
  Wide prefix() const {
    const __m512 pairs = _mm512_add_ps(v, _mm512_castsi512_ps(_mm512_bslli_epi128(_mm512_castps_si512(v), 4)));
    const __m512 sums = _mm512_add_ps(pairs, _mm512_castsi512_ps(_mm512_bslli_epi128(_mm512_castps_si512(pairs), 8)));
    const Wide within{sums}, quarters{_mm512_maskz_permute_ps(0xFFFF, sums, 0xFF)};
    return (within + quarters.moved_up<4>()) + (quarters.moved_up<8>() + quarters.moved_up<12>());
  }
  /// Lanes moved up by N, zeros below.
  template <int N>
  Wide moved_up() const {
    const __m512i zero = _mm512_setzero_si512();
    return {_mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xFFFF, _mm512_castps_si512(v), zero, 16 - N))};
  }
  float last() const { return v[15]; }
  /// The lane becomes smaller by x.
  Wide less_at(std::size_t lane, float x) const {
    return {_mm512_mask_sub_ps(v, static_cast<__mmask16>(1U << lane), v, _mm512_set1_ps(x))};
  }
  /// The first lane above x, kLanes if there is none. Lanes ascend.
  std::size_t first_above(float x) const {
    const unsigned above = _mm512_cmp_ps_mask(v, _mm512_set1_ps(x), _CMP_GT_OQ);
    return static_cast<std::size_t>(__builtin_ctz(above | 0x10000U));
  }
};

/// The first i = first, first + step, … < count with running[i * kLanes + lane] - (i < from ? 0 : less) > x, else
/// count; these values ascend. Whole vectors are compared, though only one lane matters: they have just been stored,
/// and single floats of theirs would have to wait until the stores have left for the cache.
inline std::size_t first_above_by_steps(const float* running, std::size_t lane, const Steps& steps, float x,
                                        std::size_t from, float less) {
  const __m512 low = _mm512_set1_ps(x), high = _mm512_set1_ps(x + less);
  for (std::size_t begin = steps.first; begin < steps.count; begin += 32 * steps.step) {
    unsigned above = 0, bit = 0;
    for (std::size_t i = begin; bit < 32 && i < steps.count; i += steps.step, ++bit) {
      const __m512 sums = _mm512_load_ps(running + i * kLanes);
      const unsigned mask = _mm512_cmp_ps_mask(sums, i < from ? low : high, _CMP_GT_OQ);
      above |= ((mask >> lane) & 1U) << bit;
    }
    if (above != 0) return begin + steps.step * static_cast<std::size_t>(__builtin_ctz(above));
  }
  return steps.count;
}

#include "algorithms/lda_list.inc"

#include "algorithms/lda_kernels.inc"

// Few topics in registers. sample_dense() is a chain from token to token where tokens move: what a move changes in φ
// has to reach the cache before whole vectors of it can be loaded again, and a draw waits for numbers to go from
// vectors to general registers and back. With 128 topics at most, φ, the row of the document and the running sums fit
// into the registers of this level, a move is a masked operation on each of them, and a draw leaves vectors once, as it
// ends. Two thirds of the time of sample_dense() for 100 topics.

inline constexpr std::size_t kMostVectors = 8;

inline __m512 counts_as_floats(const std::int32_t* counts) {
  return _mm512_maskz_cvtepi32_ps(0xFFFF, _mm512_load_si512(counts));
}
inline __m512i topics_of_vector(std::size_t vector) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(kLanes * vector)));
}
inline __mmask16 lane_of(__m512i topic, std::size_t vector) {
  return _mm512_cmpeq_epi32_mask(topic, topics_of_vector(vector));
}
inline __m512i splat_first_lane(__m512i x) {
  const auto halves = reinterpret_cast<__v8di>(x);
  return _mm512_maskz_broadcastd_epi32(0xFFFF,
                                       reinterpret_cast<__m128i>(__builtin_shufflevector(halves, halves, 0, 1)));
}
/// What is kept in registers of a word, and of a document with it.
template <std::size_t V>
struct Registers {
  __m512 phi[V];
  __m512 phi_more[V];  ///< φ of each topic, had the word a token more of it
  __m512 row[V];       ///< n_dk + α_k
};

template <std::size_t V>
[[gnu::always_inline]] inline void load_word(const Visit& visit, const TopicView& view, Registers<V>& r) {
  const __m512 beta = _mm512_set1_ps(visit.beta), one = _mm512_set1_ps(1);
#pragma GCC unroll 8
  for (std::size_t v = 0; v < V; ++v) {
    const __m512 mass = _mm512_add_ps(counts_as_floats(visit.counts + kLanes * v), beta);
    r.phi[v] = _mm512_mul_ps(mass, _mm512_load_ps(view.inverse + kLanes * v));
    r.phi_more[v] = _mm512_mul_ps(_mm512_add_ps(mass, one), _mm512_loadu_ps(view.more + kLanes * v));
  }
}

template <std::size_t V>
[[gnu::always_inline]] inline void load_document(const std::int32_t* counts, const TopicView& view, Registers<V>& r) {
#pragma GCC unroll 8
  for (std::size_t v = 0; v < V; ++v) {
    r.row[v] = _mm512_add_ps(counts_as_floats(counts + kLanes * v), _mm512_load_ps(view.alpha + kLanes * v));
  }
}

/// The running sums of the masses, lane by lane; that of the topic `own` is `kept`. Of four vectors each waits for two
/// sums only.
template <std::size_t V>
[[gnu::always_inline]] inline void sum_masses(const Registers<V>& r, __m512i own, float kept, __m512 (&sums)[V]) {
  const __m512 mass_kept = _mm512_set1_ps(kept);
#pragma GCC unroll 8
  for (std::size_t v = 0; v < V; ++v) {
    sums[v] = _mm512_mask_mov_ps(_mm512_mul_ps(r.row[v], r.phi[v]), lane_of(own, v), mass_kept);
  }
#pragma GCC unroll 8
  for (std::size_t v = 1; v < V; v += 2) sums[v] = _mm512_add_ps(sums[v], sums[v - 1]);
#pragma GCC unroll 8
  for (std::size_t v = 2; v < V; ++v) {
    if (v % 4 >= 2) sums[v] = _mm512_add_ps(sums[v], sums[v / 4 * 4 + 1]);
  }
#pragma GCC unroll 8
  for (std::size_t v = 4; v < V; ++v) sums[v] = _mm512_add_ps(sums[v], sums[3]);
}

/// The topic where the sums pass `uniform` times all of them, in every lane: in the first lane whose prefix sum passes,
/// as many vectors on as do not pass. All lanes count their own, so none waits for which of them it is.
template <std::size_t V>
[[gnu::always_inline]] inline __m512i draw_topic(const __m512 (&sums)[V], float uniform) {
  const __m512 lanes = Wide{sums[V - 1]}.prefix().v;
  const __m512 all = _mm512_maskz_permutexvar_ps(0xFFFF, _mm512_set1_epi32(kLanes - 1), lanes);
  const __m512 target = _mm512_mul_ps(all, _mm512_set1_ps(uniform));
  constexpr __mmask16 kLast = 1U << (kLanes - 1);  // passes, though all times a number below 1 was rounded up
  const auto passes = static_cast<__mmask16>(_mm512_cmp_ps_mask(lanes, target, _CMP_GT_OQ) | kLast);
  const __m512 rest = _mm512_sub_ps(target, Wide{lanes}.moved_up<1>().v);
  const __m512i step = _mm512_set1_epi32(kLanes);
  __m512i topics = topics_of_vector(0);
#pragma GCC unroll 8
  for (std::size_t v = 0; v + 1 < V; ++v) {
    topics = _mm512_mask_add_epi32(topics, _mm512_cmp_ps_mask(sums[v], rest, _CMP_LE_OQ), topics, step);
  }
  return splat_first_lane(_mm512_maskz_compress_epi32(passes, topics));
}

/// The token goes from the topic `old`, if it has one, to `drawn`, in all counts and registers.
template <std::size_t V>
[[gnu::always_inline]] inline void move_in_registers(Visit& visit, TopicView& view, std::int32_t* row, Topic old,
                                                     Topic drawn, Registers<V>& r) {
  const auto phi_with = [&](Topic topic, int more, float inverse) {
    return _mm512_set1_ps((static_cast<float>(visit.counts[topic] + more) + visit.beta) * inverse);
  };
  const __m512i from = _mm512_set1_epi32(static_cast<int>(old)), to = _mm512_set1_epi32(static_cast<int>(drawn));
  __m512 phi_from = _mm512_setzero_ps(), more_from = phi_from;
  if (old != kNoTopic) {
    --row[old];
    change_counts(visit, view, old, -1);
    phi_from = phi_with(old, 0, view.inverse[old]);
    more_from = phi_with(old, 1, view.more[old]);
  }
  ++row[drawn];
  note_added(visit, drawn);
  change_counts(visit, view, drawn, 1);
  const __m512 more_to = phi_with(drawn, 1, view.more[drawn]), one = _mm512_set1_ps(1);
#pragma GCC unroll 8
  for (std::size_t v = 0; v < V; ++v) {
    const __mmask16 left = lane_of(from, v), entered = lane_of(to, v);
    r.phi[v] = _mm512_mask_mov_ps(_mm512_mask_mov_ps(r.phi[v], left, phi_from), entered, r.phi_more[v]);
    r.phi_more[v] = _mm512_mask_mov_ps(_mm512_mask_mov_ps(r.phi_more[v], left, more_from), entered, more_to);
    r.row[v] = _mm512_mask_add_ps(_mm512_mask_sub_ps(r.row[v], left, r.row[v], one), entered, r.row[v], one);
  }
}

template <std::size_t V>
void sample_dense_in_registers(Visit& the_visit, TopicView& the_view, const DenseRows& documents) {
  // Copies, or their members would be loaded again after each store of a count.
  Visit visit = the_visit;
  TopicView view = the_view;
  Registers<V> r;
  load_word(visit, view, r);
  std::int32_t* row = nullptr;
  for (std::size_t i = 0; i < visit.tokens; ++i) {
    const std::size_t ahead = i + kTokensAhead;
    if (ahead < visit.known && visit.documents[ahead] != visit.documents[ahead - 1]) {
      prefetch_row(documents.counts + visit.documents[ahead] * documents.stride, V * kLanes * sizeof(std::int32_t));
    }
    if (i == 0 || visit.documents[i] != visit.documents[i - 1]) {
      row = documents.counts + visit.documents[i] * documents.stride;
      load_document(row, view, r);
    }
    const Topic old = visit.topics[i];
    const float kept =
        old == kNoTopic ? 0.0F : (static_cast<float>(row[old] - 1) + view.alpha[old]) * phi_without(visit, view, old);
    __m512 sums[V];
    sum_masses(r, _mm512_set1_epi32(static_cast<int>(old)), kept, sums);
    const __m512i topic = draw_topic(sums, visit.uniforms[i]);
    const Topic drawn = clamped(static_cast<std::size_t>(_mm512_cvtsi512_si32(topic)), view.topics);
    if (drawn == old) continue;
    visit.topics[i] = drawn;
    move_in_registers(visit, view, row, old, drawn, r);
  }
  the_visit.added_size = visit.added_size;
}

void sample_dense_few_or_many(Visit& visit, TopicView& view, const DenseRows& documents) {
  static constexpr decltype(Kernels::sample_dense) kByVectors[] = {
      sample_dense_in_registers<1>, sample_dense_in_registers<2>, sample_dense_in_registers<3>,
      sample_dense_in_registers<4>, sample_dense_in_registers<5>, sample_dense_in_registers<6>,
      sample_dense_in_registers<7>, sample_dense_in_registers<8>};
  const std::size_t vectors = view.padded / kLanes;
  (vectors <= kMostVectors ? kByVectors[vectors - 1] : sample_dense)(visit, view, documents);
}

// Documents of 16 tokens at most: their list is one vector, so what is looked for in it is compared with all of it, and
// topics are put in and taken out by expanding and compressing.

/// The list of such a document.
struct ShortList {
  __m512i topics, counts;
  std::uint32_t size;
  __mmask16 used() const { return static_cast<__mmask16>((1U << size) - 1); }
  __mmask16 place_of(Topic topic) const {
    return _mm512_mask_cmpeq_epi32_mask(used(), topics, _mm512_set1_epi32(static_cast<int>(topic)));
  }
  void add(__mmask16 places, int change) {
    counts = _mm512_mask_add_epi32(counts, places, counts, _mm512_set1_epi32(change));
  }
  void drop_empty() {
    const __mmask16 kept = _mm512_mask_test_epi32_mask(used(), counts, counts);
    topics = _mm512_maskz_compress_epi32(kept, topics);
    counts = _mm512_maskz_compress_epi32(kept, counts);
    size = static_cast<std::uint32_t>(__builtin_popcount(kept));
  }
  void put(Topic topic) {
    const __m512i wanted = _mm512_set1_epi32(static_cast<int>(topic));
    const __mmask16 here = place_of(topic);
    if (here != 0) return add(here, 1);
    const auto below = static_cast<unsigned>(_mm512_mask_cmplt_epu32_mask(used(), topics, wanted));
    const auto hole = static_cast<__mmask16>(below + 1);  // below is all ones up to it: lists ascend
    const auto others = static_cast<__mmask16>(~hole);
    topics = _mm512_mask_mov_epi32(_mm512_maskz_expand_epi32(others, topics), hole, wanted);
    counts = _mm512_mask_mov_epi32(_mm512_maskz_expand_epi32(others, counts), hole, _mm512_set1_epi32(1));
    ++size;
  }
  void write(const List& list) const {
    _mm512_store_si512(list.topics, topics);
    _mm512_store_si512(list.counts, counts);
    *list.stored_size = size;
  }
};

/// As sample_listed_token().
[[gnu::always_inline]] inline void sample_short_token(Visit& visit, TopicView& view, const List& list, std::size_t i,
                                                      WordMass& mass) {
  ShortList row{_mm512_load_si512(list.topics), _mm512_load_si512(list.counts), list.size};
  const Topic old = visit.topics[i];
  const __m512 counts = _mm512_maskz_cvtepi32_ps(0xFFFF, row.counts);
  __m512 masses = _mm512_mul_ps(
      counts, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), row.used(), row.topics, view.phi, sizeof(float)));
  float word_mass = mass.total(view);
  __mmask16 own = 0;
  if (old != kNoTopic) {
    own = row.place_of(old);
    const float without = phi_without(visit, view, old);
    word_mass -= view.alpha[old] * (view.phi[old] - without);
    masses = _mm512_mask_mul_ps(masses, own, _mm512_sub_ps(counts, _mm512_set1_ps(1)), _mm512_set1_ps(without));
  }
  const Wide sums = Wide{masses}.prefix();
  const float in_document = sums.last();
  const float target = visit.uniforms[i] * (in_document + word_mass);
  const bool from_document = target < in_document;
  Topic drawn = 0;
  if (from_document) {
    // The last one passes, though its sum may have been rounded otherwise than that of all lanes.
    const __mmask16 above = _mm512_mask_cmp_ps_mask(row.used(), sums.v, _mm512_set1_ps(target), _CMP_GT_OQ);
    const auto passes = static_cast<__mmask16>(above | 1U << (row.size - 1));
    drawn = static_cast<Topic>(_mm512_cvtsi512_si32(_mm512_maskz_compress_epi32(passes, row.topics)));
    if (drawn == old) return;
  }
  if (old != kNoTopic) {
    change_mass(visit, view, mass, old, -1);
    row.add(own, -1);
    row.drop_empty();
  }
  if (!from_document) drawn = draw_from_word(visit, view, mass, double{target} - double{in_document});
  row.put(drawn);
  row.write(list);
  note_added(visit, drawn);
  change_mass(visit, view, mass, drawn, 1);
  visit.topics[i] = drawn;
}

void sample_sparse_short_or_long(Visit& visit, TopicView& view, const ListedRows& documents) {
  ListedVisit state{enter_word(visit, view), Wide::zero()};
  for (std::size_t i = 0; i < visit.tokens; ++i) {
    prefetch_list_ahead(visit, documents, i);
    const std::uint32_t document = visit.documents[i];
    const List list = open_list(documents, document);
    if (documents.begin[document + 1] - documents.begin[document] == 2 * kLanes) {
      sample_short_token(visit, view, list, i, state.mass);
    } else {
      sample_listed_token(visit, view, list, i, state);
    }
  }
  leave_word(visit, view);
}

}  // namespace

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable{sample_dense_few_or_many, sample_sparse_short_or_long};
  return kTable;
}

}  // namespace orrery::lda
