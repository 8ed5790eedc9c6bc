// Hyper-parameters by fixed-point iteration (T. Minka, "Estimating a Dirichlet distribution", 2000; H. Wallach, 2008):
//
//   α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(L_d + ᾱ) − ψ(ᾱ)]
//   β   ← β Σ_(k,w) [ψ(n_kw + β) − ψ(β)] / (V Σ_k [ψ(n_k + Vβ) − ψ(Vβ)])
//
// α becomes asymmetric: frequent topics get more of it. β stays symmetric. Each step raises the joint likelihood of the
// assignments.
#pragma once

#include "algorithms/lda_state.h"

namespace orrery::lda {

/// Whether priors are fitted after this iteration: every fifth, once the first assignments are forgotten.
bool priors_are_due(Clock iteration);
/// Some steps for α and, if it is symmetric, β; from the counts as they are. Cost: a few passes over the counts that
/// are not 0. Nothing may run meanwhile.
void fit_priors(LdaState& state);

}  // namespace orrery::lda
