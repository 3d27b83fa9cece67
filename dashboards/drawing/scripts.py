"""Scripts of our own for transcripts: no text of a log may ever stand in an element that runs scripts."""

from __future__ import annotations

SCROLL = """<script>
const show = (steady) => {
  const found = document.querySelector('.ca-timeline .aim');
  if (found) found.scrollIntoView({block: 'center'});
  if (found && !steady) found.focus({preventScroll: true});
};
show(false);
// What is still being drawn above moves the event away: follow it until it rests or somebody scrolls.
const follow = setInterval(() => show(true), 250);
const rest = () => clearInterval(follow);
setTimeout(rest, 5000);
const moves = ['wheel', 'touchmove', 'keydown', 'mousedown'];
for (const moved of moves) addEventListener(moved, rest, {once: true});
</script>"""
KEYS = """<script>
if (!window.caKeys) {
  window.caKeys = true;
  const steps = {j: ['', 1], k: ['', -1], n: ['.found', 1], p: ['.found', -1]};
  const typing = 'input, textarea, select, [contenteditable], [role=listbox]';
  addEventListener('keydown', (key) => {
    const step = steps[key.key];
    if (!step || key.ctrlKey || key.metaKey || key.altKey || key.target.closest?.(typing)) return;
    const here = document.activeElement?.closest?.('.ca-timeline .event');
    const own = here?.closest('.ca-timeline')?.dataset.side;
    const among = here ? here.closest('.ca-pairs, .ca-transcript .ca-timeline:not([data-side])') : document;
    const half = own ? `[data-side=${own}] ` : '';
    const all = [...among.querySelectorAll(half + '.event' + step[0])];
    const side = step[1] > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
    const rest = all.filter((event) => !here || here.compareDocumentPosition(event) & side);
    const next = here && step[1] < 0 ? rest.pop() : rest[0];
    if (!next) return;
    next.focus({preventScroll: true});
    next.scrollIntoView({block: 'center'});
    key.preventDefault();
  });
}
</script>"""
"""Steps from event to event, and from finding to finding, within the transcript that has the focus, or the
side of two that are lined up."""
ROWS = """<script>
if (!window.caRows) {
  window.caRows = true;
  const steps = {j: 1, k: -1};
  addEventListener('keydown', (key) => {
    const typing = key.target.closest?.('input, textarea, select, [contenteditable], [role=listbox]');
    if (!steps[key.key] || typing || key.ctrlKey || key.metaKey || key.altKey) return;
    const all = [...document.querySelectorAll('.ca.list td a')];
    const next = all[all.indexOf(document.activeElement) + steps[key.key]];
    if (!next) return;
    next.focus();
    key.preventDefault();
  });
}
</script>"""
"""Steps from session to session in a list of them, from wherever the focus is to the first."""
WITHIN = """<script>
const show = () => document.querySelectorAll('.ca-beside').forEach((box) => {
  const aim = box.querySelector('.aim');
  if (aim) box.scrollTop += aim.getBoundingClientRect().top - box.getBoundingClientRect().top - 24;
});
show();
setTimeout(show, 300);
</script>"""
"""Two transcripts in one frame are moved to the first of the events that are asked for."""
