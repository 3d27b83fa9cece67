"""What each metric means, one click away from where it is shown. Our words, Markdown; no text of a log."""

from __future__ import annotations

DEFINITIONS = {
    "delivery_rate": "Share of sessions that delivered a result before they ended.",
    "task_performance": "Quality of delivered results, from 0 to 1, by the task's own scoring; sessions that "
    "delivered nothing are missing here.",
    "collab_score": "Delivery times quality: 0 where nothing was delivered, else task performance "
    "(automatic), or the user's rating of the outcome divided by 5 (human).",
    "initiative_entropy": "How evenly the team shares the initiative: H = −Σ pᵢ log_N pᵢ over the N members, "
    "pᵢ being a member's share of the utterances that take the initiative. 1 is even; 0: at least one "
    "member took none; undefined where nobody did. The environment is no member.",
    "effective_confirmations": "CA+: an agent's questions that the human's reply confirms, per session.",
    "halting_messages": "CA−: human messages that halt what the agent is doing, per session.",
    "win_rate": "Share of outcomes preferred to those of the fully autonomous agent on the same query.",
    "satisfaction": "The user's overall satisfaction with the agent, from 1 to 5.",
    "failure rate": "Share of trajectories in which a rater found the mode at least once; a category is the "
    "union of its modes, over trajectories with an answer to all of them. Corrected: what the judge's rate "
    "becomes when people's labels correct it.",
    "cohen_kappa": "Agreement of two raters beyond chance: (observed − chance) / (1 − chance), with each "
    "rater's own margins. Undefined where both used the same label alone.",
    "fleiss_kappa": "As Cohen's κ, for several raters, with their common margins.",
    "krippendorff_alpha": "1 − observed / expected disagreement; admits missing ratings.",
    "gwet_ac1": "Agreement beyond chance that stays put where a label is rare.",
    "calibration": "Of the answers that a judge gave with probability p, the share that people confirm. On "
    "the diagonal the judge's probabilities mean what they say.",
    "human_intervention_rate": "ReHAC: the share of steps that the human took.",
    "reward": "ReHAC: R = T − λC, task reward less λ times the number of human steps.",
    "task_reward": "ReHAC: T, the score of the result alone.",
    "tes": "Collab-Overcooked: trajectory efficiency score, how much of the reference that fits best was "
    "followed in order, discounted for what was needless.",
    "progress_completeness": "Collab-Overcooked: the mean of the agents' trajectory efficiency scores.",
    "initiating_capability": "Collab-Overcooked: share of collaborations whose request furthered the "
    "task: of those that were begun, or, by the paper, of those that the task needs.",
    "responding_capability": "Collab-Overcooked: the same of the answers.",
    "collaboration": "Collab-Overcooked: whether request and answer furthered the task, as shares of a run's "
    "collaborations.",
    "initiation_errors": "Collab-Overcooked: wrong requests by class, as shares of the requests.",
    "partial_structure": "CoBlock: nothing stands that the target has not, finished or not.",
    "workload_balance": "ab / (a² + b²) for what two parties did: 0.5 is even, 0 is one party alone. "
    "CoBlock: of the blocks placed, set against the best split that the target allows.",
    "success_rate": "Share of runs that reached the goal.",
    "timesteps": "Steps until the end of the run.",
}
