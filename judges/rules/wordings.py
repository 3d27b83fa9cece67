"""English wordings that the `rules` rater looks for: our own lists. An edit changes the rater's version.

The patterns are RE2's, which takes time in proportion to a text, whatever it says; letter case does not
matter. A word (`\\w`, `\\b`) is one of ASCII's letters, digits and underscores. Apostrophes and question
marks are ASCII's, too; those of a text are made so before it is looked at. Capitals count within `(?-i:)`.
"""

from __future__ import annotations

VERBS = (
    "add|adjust|arrange|ask|avoid|begin|book|calculate|cancel|change|check|choose|cite|clean|close|combine|"
    "compare|compute|consider|continue|convert|copy|correct|count|cover|create|cut|delete|describe|drop|"
    "edit|exclude|expand|explain|extend|filter|find|finish|fix|focus|format|get|give|go|group|hide|hold|"
    "highlight|ignore|include|insert|keep|leave|limit|list|look|lower|make|mark|mention|merge|move|open|"
    "order|organi[sz]e|pick|plan|plot|polish|prefer|prepare|proceed|provide|put|raise|read|redo|refer|"
    "remember|remove|rename|reorder|replace|report|rerun|restore|restrict|revert|review|revise|rewrite|run|"
    "save|search|select|send|set|share|shorten|show|skip|sort|split|start|state|stay|stick|stop|sum|"
    "summari[sz]e|swap|switch|take|tell|test|trim|try|turn|undo|update|use|verify|wait|weigh|write"
)
OPENERS = (
    r"^(?:(?:(?:yes|yeah|yep|no (?:problem|worries)|no|nope|ok(?:ay)?|sure|right|fine|great|good|perfect|"
    r"thanks(?: a lot)?|thank you(?: (?:so|very) much)?|alright|all right|hi|hello|hey|oh|well|so|"
    r"and|but|also|then|now|first|next|of course|got it|understood|sounds good|i see|in addition|"
    r"for now)\b(?: there)?[\s,.:;!–-]*))+"
)
COURTESY = (
    r"(?:that(?:'s| is| sounds| looks)?(?: all)? (?:good|great|fine|right|perfect|it|ok|okay)|"
    r"sorry.*|my apologies.*|(?:you(?:'re| are) )?welcome|no problem|good (?:job|work|morning|"
    r"evening|luck)|take your time|(?:it|that) (?:doesn't|does not) matter(?: to me)?|"
    r"(?:it )?looks (?:good|great|right)(?: to me)?|i (?:agree|do not|don't|"
    r"am not sure.*)|i(?:'m| am) (?:glad|happy).*|(?:well|nicely) done|have a .*|"
    r"(?:please )?(?:go ahead|do|do (?:so|it|that)|proceed)(?: (?:with|and do) (?:it|that|"
    r"this))?(?:,? please)?|"
    r"(?:please )?(?:just )?let me know (?:if|when|whenever|"
    r"should) .{0,40}\b(?:any(?:thing)?(?: \w+){0,3}|"
    r"questions?|else)|(?:please )?(?:feel free to|(?:don't|do not) hesitate to) (?:ask|reach out|"
    r"let me know).*)"
)
REPEATS = r"(?:i (?:already )?(?:told|said)|as i said|so you (?:want|mean)|you keep|you said)\b"
STATUS = (
    r"(?:(?:i(?:'m| am)(?: now| still| currently)? \w+ing\b)|i(?:'ll| will)(?: now)? (?:be |go |"
    r"continue|proceed|start|begin|do|get|work|look|take a look|take care|check|finish)|"
    rf"i(?:'ll| will)(?: now| then| also)? (?:{VERBS})\b[^?]*$|(?:i(?:'ve| have)|"
    r"i) (?:just |now |also )?(?:finished|done|updated|added|completed|started|checked|saved|sent|"
    r"written|sorted|fixed|drafted|created|made|included|revised|prepared|polished|finali[sz]ed)\b|"
    r"let me (?:just )?(?:check|see|look|think|start|try|continue)|"
    r"(?:all )?done\b|working on|on it\b|(?:just )?(?:a|one) (?:moment|minute|second)|give me)"
)
OTHERS = (
    r"\byou (?:should|could|need to|must|might want)\b|\b(?:we (?:should|could|need|must)|"
    r"let'?s|let us)\b|\bplease (?:also |then )?(?:"
    + "|".join(verb for verb in VERBS.split("|") if verb not in ("wait", "hold", "give", "stay"))
    + r")\b"
)
"""What others are to do, beside what the speaker does: to wait for it is none."""
REASON = (
    r"\b(?:because|since it|so that|otherwise|therefore|instead|rather than|at most|at least|"
    r"no more than|must(?:n't)?|ha(?:s|ve) to|cannot|can't|too (?:long|short|many|much|expensive|"
    r"few|vague|broad))\b"
)
REQUEST = (
    rf"^(?:please\b|(?:just |only |never |always |don't |do not )?(?:{VERBS})\b)|\bplease (?:also |"
    rf"do not |don't |just )?(?:{VERBS})\b|,? please$|\b(?:let'?s|let us|we (?:should|could|"
    rf"need|must|can|might|want|would|have)|you (?:should|could|need to|must|can|might want)|"
    rf"it (?:should|must|needs)|how about|what about|why not|i(?:'d| would) (?:suggest|recommend|"
    rf"propose|prefer|like|love|rather)|i (?:suggest|recommend|propose|want|need|prefer|wish|"
    rf"expect)|i(?:'m| am) (?:thinking|looking for|interested|hoping)|make sure|be sure|"
    rf"my (?:suggestion|budget|idea|preference|goal)|the (?:plan|idea) (?:is(?: to| that|:)|should|"
    rf"would)|the (?:goal|next step|budget|deadline) (?:is|should|would)|(?:and|then|but|"
    rf",) (?:then )?(?:{VERBS}) (?:the|it|them|a|an|"
    rf"this|that|all|my|our))\b"
)
INFORMS = (
    r"\d|\b(?:i|we) (?:found|noticed|see that|discovered|learned|think|believe|have)\b|"
    r"\b(?:there (?:is|are|were|was)|according to|it (?:seems|turns out|looks like)|shows?|"
    r"suggests?|means?|contains?|costs?|(?:is|are|was|were) (?:missing|wrong|incorrect|not|only|"
    r"already|higher|lower|closed|full)|does(?:n't| not)|did(?:n't| not)|fail(?:s|ed)|error|"
    r"however|problem)\b"
)
OPEN_CALL = (
    r"any (?:other |more |further )?(?:ideas|thoughts|suggestions|questions|feedback)|what(?:'s|"
    r" is)? next|anything else|"
    r"what do you think\W*$|(?:what do you|do you) mean|could you repeat|how are you|"
    r"are you (?:there|still)|which .{0,30} do you mean|(?:can|may) i (?:help|assist)|^\W*(?:really|"
    r"right|ok(?:ay)?|correct|is that right)\W*$"
)
DECISION = (
    r"\b(?:shall|should|may|can|could|must) (?:i|we)\b|\b(?:do|would|did) you (?:\w+ )?(?:want|"
    r"like|prefer|agree|approve|mind|wish|rather)\b|\b(?:is|are|does|do|would|will) (?:this|that|"
    r"it|these|those|they)\b.{0,60}\b(?:ok|okay|fine|right|correct|work|good|acceptable|suit|"
    r"enough|sound|look)|\b(?:which|what) (?:\w+ ){0,4}(?:prefer|like|choose|want|favou?r)|\bor\b|"
    r"\b(?:ok(?:ay)?|right|agreed|correct|sound(?:s)? good)\W*\?|\b(?:anything|"
    r"something) (?:\w+ ){0,10}(?:change|adjust|add|remove|revise)|\bwhich (?:one|of|option|"
    r"version)|\b(?:your|any|an?) preferences?\b|\bready (?:for|to)\b|\bwould (?:a|an|the|it)\b"
)
COURTESY_QUESTION = (
    r"anything else (?:i can|you need|you want me)|(?:can|may) i (?:help|assist)|how are you|"
    r"any (?:thoughts|ideas)\W*\?$|do you want to know|do you have any (?:questions|thoughts)"
)
ACCEPTS = (
    r"^\W*(?:yes|yeah|yep|yup|sure|ok(?:ay)?|of course|absolutely|definitely|certainly|please do|"
    r"go ahead|right|correct|exactly|agreed|fine|perfect|great|good|sounds|looks|that works|works|"
    r"do it|both|either|true)\b|\b(?:go ahead|please do|please proceed|sounds (?:good|great|fine|"
    r"right|perfect)|(?:that|it|this) works|works for me|i agree|looks (?:good|great|fine|right)|"
    r"fine (?:with|"
    r"by) me|that(?:'s| is) (?:right|correct|fine|good))\b"
)
REFUSES = (
    r"^\W*(?:please )?(?:no|nope|nah|not (?:yet|now|really|that|the)|never|better not|rather not|wait|"
    r"stop|"
    r"hold on)\b|\b(?:don't|do not|i(?:'d| would) rather|instead|let's not|no need|neither|"
    r"not necessary)\b"
)
DELEGATES = (
    r"\b(?:up to you|your (?:choice|call)|you (?:decide|choose|pick)|whatever you|as you (?:like|"
    r"wish|prefer)|pick one|either (?:is|one)|(?:do not|don't) (?:care|mind)|no preference|"
    r"(?:does not|doesn't) matter|"
    r"surprise me)\b"
)
CHOOSES = (
    r"\b(?:i(?:'d| would) (?:like|prefer|love|go)|i (?:prefer|want|choose|like)|(?:the )?(?:first|"
    r"second|third|last|former|latter)(?: one| option)?|option \w+|take (?:the|that)|let'?s "
    r"(?:go|take|do|use|keep)|(?:please )?(?:use|keep|go with|make it|choose|add|remove|"
    r"change|swap))\b"
)
UNDECIDED = (
    r"\b(?:i(?:'m| am) not sure|not sure about|i (?:do not|don't) know|let me think|"
    r"need (?:to think|more time)|maybe later|hard to say|depends)\b|^\W*(?:how|what|why|where|"
    r"when|who)\b[^.!]*\?\W*$"
)
_LATER = r"(?:yet|until|till|before (?:i|we|you|he|she|they|my|our|the)|for now|right now|for the moment)"
_STEPS = (
    r"(?:begin|book|buy|call|cancel|change|commit|contact|continue|delete|deploy|do|edit|e-?mail|finish|go|"
    r"merge|move|order|overwrite|pay|post|proceed|publish|push|remove|reply|run|send|sign|start|submit|"
    r"transfer|write)"
)
_STEPPING = (
    r"(?:beginning|booking|buying|calling|cancell?ing|changing|committing|contacting|continuing|deleting|"
    r"deploying|doing|editing|e-?mailing|finishing|merging|moving|ordering|overwriting|paying|posting|"
    r"proceeding|publishing|pushing|removing|replying|running|sending|signing|starting|submitting|touching|"
    r"transferring|writing)"
)
_SHORTLY = r"(?:moment|second|sec|minute|bit|while)"
_HERE = (
    r"(?:$|[^ \w]| (?:here|now|right|please|this|that|it|until|till|before|\w+ing|"
    rf"for (?:now|a (?:\w+ )?{_SHORTLY})|an? (?:\w+ )?{_SHORTLY})\b)"
)
"""What comes after a word for a stop that is none on a journey."""
_BREAK = (
    r"(?:lunch|dinner|breakfast|brunch|coffee|tea|a (?:\w+ )?(?:drink|snack|meal|bite|swim|walk|picnic)|"
    r"fuel|gas|petrol|ice cream|(?:some |a few )?(?:photos|pictures)|(?:\w+ )?nights?)"
)
_PLACE = (
    r"(?:airport|bakery|beach|cafe|café|castle|cathedral|church|city|gallery|hotel|lake|market|museum|"
    r"park|pub|restaurant|shop|station|store|supermarket|town|viewpoint|village|waterfall|winery)"
)
HALT = (
    r"^\W*(?:(?:please|ok(?:ay)?|no|hey|wait|now|but|and|so|oh|then|just)\W+){0,3}(?:stop|wait|"
    r"hold (?:on|off|it|your)|pause|halt|hang on|slow down|freeze|cease|quit|abort|enough|"
    r"hands off|not so fast|that's enough|back off|leave (?:it|that|this|them|the|my)\b|"
    r"let me (?:do|handle|finish|take over|write|fix) (?:it|that|this|the)|forget (?:the|about|it|"
    r"that)|cancel (?:that|it|this|the)|never ?mind|keep (?:your )?(?:hands )?off)\b|\b(?:please|"
    r"you (?:should|must|need to|can)|(?:can|could|will|would) you|(?:want|need) you to|told you to|"
    r"asked you to|rather you|and|"
    r"just)\s+(?:now |please |just )?(?:stop|pause|wait|hold (?:on|off)|halt|slow down|refrain)\b|"
    r"\b(?:don't|"
    r"do not|dont|never|must not|(?:we|you) (?:should not|shouldn't)|not to) "
    r"(?:(?:ever|yet|just|even|now|please|you|want you to|go and) ){0,2}?(?:touch|send|start|go (?:on|"
    r"ahead|any)|"
    r"continue|proceed|keep|book|delete|submit|publish|transfer|edit|overwrite|do (?:anything|"
    r"that|it|this)|finish|run|change anything|write anything|begin|make any|move)\b.{0,60}|"
    r"\b(?:let's|let us|(?:can|could|shall|should) we) (?:please |just |now )?(?:hold (?:on|off)|"
    r"slow down(?:$|[^ \w]| (?:a (?:bit|little)|and|before|for|here|now|on (?:it|that|this)|please|until)\b)|"
    r"take a (?:short |quick |little )?break(?:$|[^ \w]| (?:here|now|from)\b)|"
    rf"(?:stop|pause|halt|wait(?: with)?){_HERE}|(?:pause|halt) the\b)|"
    rf"\b(?:can|could|will|would) you (?:please )?(?:not (?:please )?(?:touch\b|"
    rf"{_STEPS} .{{0,60}}\b{_LATER}\b)|"
    rf"mind not {_STEPPING} .{{0,60}}\b{_LATER}\b)|\bavoid {_STEPPING} .{{0,60}}\b{_LATER}\b|"
    r"^\W*(?:please\W+)?put .{1,40} on hold\b|"
    r"\b(?:let's|let us) not (?:go (?:on|any|ahead)|continue|proceed)\b|"
    r"\b(?:let's|let us) not .{1,30}\b(?:yet|now)(?: please)?(?:$|[^ \w]| (?:until|because|since|as|but|so|"
    r"we|i)\b)|"
    r"\bi(?:'ll| will) (?:take (?:it|this|that)? ?(?:over|from here)|handle (?:it|this|that)|"
    r"(?:do|finish|handle|write|edit|fix|complete) .{1,40} (?:myself|on my own))\b|"
    r"\b(?:i|we|me|us|my)\b.{0,60}\bbefore you (?:go|do|continue|proceed|start|change|send)\b|"
    r"^\W*before you (?:go|do|continue|proceed|start|change|send)\b.{0,60}\b(?:i|we|me|us|my)\b|"
    r"^\W*(?:no\W+)?not (?:yet\b|now(?:$|[^ \w]| please\b))"
)
NO_HALT = (
    r"^\W*(?:i(?:'ll| will| can| am going to)? wait(?:ing)?|wait,? (?:what|is|are|did|why|how)|"
    r"enough (?:time|money|space|for)|leave (?:at|on|from|in|by|enough|some)|don't (?:worry|"
    r"forget|hesitate)|can't wait)\b|\b(?:i|they|which|who) (?:don't|do not|dont|never) "
    r"(?:start|send|book|move|run|finish|keep|begin)\b|\bstop (?:over|by)(?:$|[^\w-])|"
    rf"\b(?:stop|pause|wait)(?: off)? [^,;]{{0,40}}\b(?:on (?:the|our|my|your) way\b|for {_BREAK}\b)|"
    r"\b(?:stop|pause)(?: off)? (?:at|in|near) (?:(?-i:[A-Z])[a-zà-ÿ]+(?:$|[^ \w]| \D)|"
    rf"(?:an?|the|some|our|my) (?:\w+ )?{_PLACE}\b)|"
    r"\bstop (?:arguing|joking|kidding|pretending|thinking|worrying)\b|"
    r"(?:^\W*(?:(?:ok(?:ay)?|but|and|so|oh|then)\W+){0,3}|\band )wait times?\b|"
    r"^\W*(?:stop|pause|halt|quit|abort|freeze) (?:is|was|button|sign)\b|"
    r"^\W*stop \d+(?:$|[^ \w]| (?:at|in|is|on|should|was|will)\b)|"
    r"\b(?:how|what|when|where|which|why)\b[^,;]{0,40} (?:can|could|shall|should) we "
    r"(?:please |just |now )?(?:hold|slow|take|stop|pause|halt|wait)\b|\bhold on to\b|"
    r"\bwait-?list|\b(?:let's|let us) not (?:forget|worry)\b|\b(?:is|are|was|"
    r"that's|it's) (?:good |"
    r"more than )?enough(?:$|[^ \w]| (?:$|[^o]|o(?:$|[^f])))|\bnon-?stop\b|\bbus stop\b"
)
_EMPTY = """
about after again also another anything because been before both check could does doing done each
else every find from give going good have help here into just know like look make many maybe more
much need next okay only other over please really right same should some something such sure take
tell than thank thanks that their them then there these they thing things think this those through
time want well were what when where which while will with would work your yours
"""
EMPTY = frozenset(_EMPTY.split())
APOSTROPHES = "‘’‛ʼ´＇"
QUESTION_MARKS = "？؟"
_PLAIN = str.maketrans(dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(QUESTION_MARKS, "?"))


def plain(text: str) -> str:
    """A text with the apostrophes and question marks of the patterns, whichever its keyboard has."""
    return text if text.isascii() else text.translate(_PLAIN)


def fingerprint() -> list[str]:
    """Every pattern, so that a changed list gives a changed version."""
    patterns = [value for name, value in globals().items() if name.isupper() and isinstance(value, str)]
    return [*patterns, *sorted(EMPTY)]
