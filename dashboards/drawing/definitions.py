"""What each metric means, one click away from where it is shown. Our words, Markdown; no text of a log."""

from __future__ import annotations

DEFINITIONS = {
    "delivery_rate": "Share of sessions that delivered a result before they ended.",
    "task_performance": "Quality of delivered results, from 0 to 1, by the task's own scoring; sessions that "
    "delivered nothing are missing here.",
    "collab_score": "Delivery times quality: 0 if nothing was delivered, else task performance "
    "(automatic), or the user's rating of the outcome divided by 5 (human).",
    "initiative_entropy": "How evenly the team shares the initiative: H = −Σ pᵢ log_N pᵢ over the N members, "
    "where pᵢ is a member's share of the utterances that take the initiative. 1 is even; 0 means that at "
    "least one member took none. If nobody took any, it counts as 0, as in the released code; by the "
    "paper it is undefined. The environment is not a member.",
    "effective_confirmations": "CA+: an agent's questions that the human's reply confirms, per session.",
    "halting_messages": "CA−: human messages that halt what the agent is doing, per session.",
    "win_rate": "Share of results that were preferred to another agent's on the same query (in Co-Gym, to "
    "the fully autonomous agent's).",
    "satisfaction": "The user's overall satisfaction with the agent, from 1 to 5.",
    "failure rate": "Share of trajectories in which a rater found the mode at least once; a category is the "
    "union of its modes, over trajectories with an answer to all of them. Corrected: the "
    "judge's rate corrected by people's labels.",
    "cohen_kappa": "Agreement of two raters beyond chance: (observed − chance) / (1 − chance), with each "
    "rater's own margins. Undefined if both used only one and the same label.",
    "fleiss_kappa": "Like Cohen's κ, for several raters, with their common margins.",
    "krippendorff_alpha": "1 − observed / expected disagreement; allows missing ratings.",
    "gwet_ac1": "Agreement beyond chance that remains stable if a label is rare.",
    "calibration": "Of the answers that a judge gave with probability p, the share that people confirm. On "
    "the diagonal the judge's probabilities mean what they say.",
    "human_intervention_rate": "Share of steps that humans took, pooled over trajectories.",
    "reward": "ReHAC: R = T − λC, the task reward minus λ times the number of human steps.",
    "task_reward": "ReHAC: T, the score of the result alone.",
    "tes": "Collab-Overcooked: trajectory efficiency score, how much of the best-fitting reference an "
    "agent followed in order, reduced for needless actions.",
    "progress_completeness": "Collab-Overcooked: the mean of the agents' trajectory efficiency scores.",
    "initiating_capability": "Collab-Overcooked: share of collaborations whose request furthered the "
    "task, of those in dialogues that the chef opened, as in the released code; by the paper, of those that "
    "the task needs.",
    "responding_capability": "Collab-Overcooked: the same for the answers.",
    "collaboration": "Collab-Overcooked: share of collaborations in which request and answer, only one of "
    "them, or neither furthered the task.",
    "initiation_errors": "Collab-Overcooked: share of the requests naming an action that are premature, "
    "repetitive or irrelevant.",
    "partial_structure": "CoBlock: share of games in which no block stands that is not in the target, "
    "finished or not.",
    "workload_balance": "ab / (a² + b²), where a and b are the steps of the two members of a team: 0.5 is "
    "even, 0 "
    "means that one did everything. CoBlock: of blocks placed and broken, relative to the best split of the "
    "target's blocks.",
    "success_rate": "Share of runs that reached the goal.",
    "timesteps": "Collab-Overcooked: steps until the order was finished. CoBlock: everything that the "
    "team did, messages and waits included.",
}
