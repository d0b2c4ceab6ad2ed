"""Common English words in their dictionary form, by how they are inflected.

`spelling_words` makes the other forms by the rules of `english_forms`.
"""

# Regular: answer, answers, answered, answering.
VERBS = """
accept accompany accuse achieve acknowledge acquire adapt add address adjust
admire admit adopt advance advise afford agree aim allow amuse analyze announce
annoy answer anticipate apologize appear applaud apply appoint appreciate
approach approve argue arrange arrest ask assemble assess assign assist
associate assume attach attack attempt attend attract avoid balance believe
belong benefit borrow bother breathe calculate cancel capture celebrate
challenge change charge chase check cheer claim classify climb collapse collect
combine comfort command commit communicate compare compete complain complete
concentrate concern confess confirm confuse connect consider consist construct
consult contact contain continue contribute control convert convince copy
correct count cover crash create criticize cross damage decide declare decorate
decrease define delay deliver demand demonstrate deny depend describe deserve
destroy detect develop differ disagree disappear disappoint discover discuss
divide doubt drag earn educate embarrass emphasize employ enable encourage enjoy
enter entertain escape establish estimate evaluate examine exceed exchange
excuse exercise exist expand expect experience explain explode explore express
extend fail fasten fetch finish fix follow force frighten fulfill gather govern
grant guarantee guess guide happen hate hesitate hope hurry identify ignore
imagine imitate improve include increase indicate influence inform injure insist
inspect install intend interfere interpret interrupt introduce invent
investigate join judge jump justify kick knock laugh launch learn lift listen
maintain manage march marry match matter measure mention modify move multiply
murder need neglect notice obey object obtain occupy occur offer operate oppose
order organize owe participate pass perform permit persuade plan please point
possess pour practice praise predict prefer prepare preserve pretend prevent
proceed produce promise pronounce propose protect prove provide publish pull
punish push qualify question reach realize receive recognize recommend record
recover reduce refer reflect refuse regret reject relax release rely remain
remember remind remove repeat replace reply represent request require rescue
resemble resist resolve respect respond restore retire reveal review reward ruin
rush satisfy save scare schedule scratch scream search select separate serve
settle share shout sign smile solve specify start stop stretch struggle submit
succeed suffer suggest supply support suppose surprise surround suspect tempt
thank threaten touch train transfer translate transport travel treat trust try
turn unite use vanish vary vote voyage wander want warn waste watch whisper
whistle wish wonder worry wrap yawn
"""

# The base form, the past tense, the participle.
IRREGULAR_VERBS = """
become became become|begin began begun|bend bent bent|bite bit bitten
blow blew blown|break broke broken|build built built|catch caught caught
choose chose chosen|cost cost cost|creep crept crept|cut cut cut|dig dug dug
do did done|drive drove driven|fall fell fallen|feed fed fed|feel felt felt
fight fought fought|fly flew flown|forbid forbade forbidden
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get got gotten|grow grew grown|hang hung hung|hear heard heard|hide hid hidden
hit hit hit|hold held held|hurt hurt hurt|keep kept kept|know knew known
lay laid laid|lead led led|leave left left|lend lent lent|let let let
make made made|mean meant meant|meet met met|overcome overcame overcome
pay paid paid|put put put|quit quit quit|ride rode ridden|ring rang rung
rise rose risen|say said said|seek sought sought|send sent sent|set set set
shake shook shaken|shine shone shone|shoot shot shot|shut shut shut
sink sank sunk|sit sat sat|speak spoke spoken|spend spent spent
split split split|spread spread spread|stand stood stood|steal stole stolen
stick stuck stuck|strike struck struck|swear swore sworn|sweep swept swept
swim swam swum|swing swung swung|take took taken|teach taught taught
tear tore torn|tell told told|think thought thought|throw threw thrown
understand understood understood|wake woke woken|win won won
"""

# What the irregular verbs of the grammar have besides their past tense.
PARTICIPLES = """
draw drawn|drink drunk|eat eaten|give given|go gone|have had|see seen|show shown
sing sung|wear worn|write written
"""

# Regular: ability, abilities.
NOUNS = """
ability absence accident account achievement actor address advantage adventure
advertisement afternoon age agreement air airport alternative ambulance amount
animal anniversary announcement apartment appearance appointment approach
argument arm arrangement arrival art article aspect assignment assistant athlete
atmosphere attempt attitude audience author baby back bag ball balloon band bank
bar base basket bathroom battery beach beginning behavior belief bell bicycle
birthday blanket block blood board body bone bottle bottom boundary bowl
breakfast breath brother brush building business calendar camera camp candidate
capital captain card care career carpenter case castle category ceiling
celebration cell cent century certificate chain challenge champion chance
channel chapter character chart chest choice cigarette circle circumstance
citizen classroom climate cloud club coach coast coin colleague collection
college color column combination comment committee community companion company
comparison competition complaint computer concept concert conclusion condition
conference connection conscience consequence construction conversation corn
corner council country courage course court cousin creature criminal criticism
crowd crown cry curtain customer cycle dance date daughter day deal death debt
decade decision definition degree department description desert desire desk
detail development device dictionary difference difficulty dinner direction
director disaster discipline discovery discussion disease disk distance dozen
drawer dream driver dust duty ear earth economy edge edition editor education
effect effort election element elephant emergency emotion employee employer end
enemy engine engineer entrance envelope environment equation error evening event
example exception exhibition existence expense experience experiment expert
explanation expression eye face fact factor factory failure fair family farm
farmer fault favorite fear feature feeling field figure film finger fire flag
flight floor flow flower fold force foreigner form fortune foundation frame
freedom friendship function furnace game gate generation gift giraffe glove goal
gold government grammar group guard guest guitar habit hair hall hammer hand
handkerchief head heart heaven height highway hill history hole holiday horizon
hospital hour husband ice idea identity illness image immigrant importance
impression improvement inch incident income individual industry ingredient
inhabitant injury instance institution instruction instrument intention interest
interval interview introduction invention invitation iron island item jacket
jewel job joke journal journey joy kilometer kingdom kitchen ladder lake land
lane language law lawyer layer leader lecture leg lesson level library license
lie limit line lip list load location loss luck lunch machine magazine mail
majority manager manner mark mass material mathematician meaning measurement
mechanic medicine meeting member memory merchant message method mile millennium
mind minister minority minute miracle mirror mistake mixture model moment money
month monument moon morning mouth movement muscle musician mystery myth nail
name narrator necessity neck nephew nest net niece night noise nose note
notebook novel nuisance number nurse occasion occurrence ocean officer oil
operation opinion opponent opportunity option orange orchestra organization
origin owner pack package page pain pair palace paragraph parent parliament part
particle partner party passage passenger path patient pattern payment pen
penalty percentage performance period permission person personality philosopher
photograph phrase physician pianist picture piece pigeon pilot pipe place planet
plant plate platform pleasure pocket poem point poison pole policy politician
pool population position possession possibility post potato pound power presence
president pressure price principle priority prisoner privilege prize problem
procedure process product profession program progress project promise
pronunciation proof property proposal protection province publisher purchase
purpose quality quantity quarter race rain range rate reaction reader reason
receipt recipe recommendation reference region relationship relative religion
repetition representative republic reputation requirement research resource
responsibility restaurant result revolution rhythm ribbon rock role roof room
roommate root rope rule sandwich scene scholar science scientist sea seat
secretary section security sense sentence sergeant servant service shadow shape
shelter ship shirt shop shoulder side sign signature silence singer situation
size skill skin sky sleep snow soil soldier solution song soul sound source
souvenir space specimen speech speed spirit sport spot stage stair star step
stomach stone store storm story stranger strategy stream street string structure
style subject substance success suggestion suit suitcase summary sun surface
surgeon surprise sweater symbol sympathy symptom system talent target task team
technique technology telephone television temperature temple term territory test
text theater theory thermometer thing thousand thumb ticket time tip title
tongue tool tournament town toy trade tradition tragedy transition traveler
treasure trial trip trouble truck tube type umpire uniform unit universe
university user vacation vacuum valley value variety vegetable vehicle version
victim victory view village violence visitor voice volume volunteer wall war
warrior water wave way weapon wedding week weekend weight wheel wind wing winner
wire witness word world wound writer yard year zone
"""

# Those that have no plural: advice.
MASS_NOUNS = """
advice anger beauty biology bravery butter chemistry clothing confidence
curiosity darkness electricity equipment evidence flour furniture gasoline
geography happiness health homework honesty honor hunger independence
information insurance jealousy justice kindness knowledge laughter laziness
leisure lightning literature loneliness luggage maintenance mathematics music
nature patience peace physics pollution pottery poverty psychology sadness
safety salt sand silver sugar tobacco traffic truth weakness wealth weather
wisdom wood
"""
IRREGULAR_PLURALS = """
child children|foot feet|goose geese|half halves|leaf leaves|life lives
loaf loaves|shelf shelves|thief thieves|tooth teeth|wife wives|hero heroes
echo echoes|analysis analyses|crisis crises|phenomenon phenomena
"""

# With an adverb in -ly: actual, actually.
ADJECTIVES = """
abrupt absolute accidental accurate actual additional adequate aggressive
amazing annual anxious apparent appropriate approximate attractive automatic
awful awkward bad bitter brief brilliant careful cautious central certain
characteristic cheerful chemical clever clumsy colorful comfortable commercial
common complete confident conscious considerable constant continuous convenient
cruel curious current deep definite deliberate delicate desperate different
direct distant eager economic effective efficient electric emotional endless
enormous entire equal especial essential eventual evident exact excellent
exclusive explicit extreme fair faithful familiar final financial firm foolish
formal fortunate frequent friendly gentle genuine gradual grateful guilty honest
horrible ideal identical immediate impatient important impossible independent
inevitable initial innocent intense international jealous joyful legal literal
local logical lonely loyal magnificent main marvelous mathematical medical
mental mere miserable musical mutual mysterious natural neat necessary negative
neutral normal obvious occasional odd official ordinary original particular
patient peaceful perfect permanent personal physical plain pleasant polite
political poor popular positive possible potential powerful practical precise
previous primary private probable professional proper proud public pure quiet
random rapid rare rational real reasonable recent regular relevant religious
remarkable responsible rich ridiculous rough rude scientific secret sensible
sensitive serious severe sharp short significant silent similar simple sincere
single slight smooth soft special specific splendid steady strict successful
sudden sufficient suitable surprising temporary terrible thorough tight
traditional tragic typical unfortunate unique universal unusual useful usual
vague valuable various vertical violent visible vital voluntary warm weird wide
wild willing wise wonderful worthless
"""
# Compared by endings: brave, braver, bravest. Their other forms follow.
GRADED = """
angry big brave brief bright broad busy calm cheap clean clear clever close cold
cool crazy cruel dark deep dirty dry early easy empty fast fat fierce fine flat
fresh friendly full funny gentle great guilty happy hard healthy heavy high hot
hungry kind large late lazy light lonely long loud low lucky near neat new nice
noisy old plain polite poor pretty proud pure quick quiet rare rich rough rude
sad safe sharp short silly simple slow small smart smooth soft steep strange
strict strong sweet tall thick thin thirsty tight tiny ugly warm weak wet wide
wild wise young
"""
# As they are.
PLAIN_ADJECTIVES = """
afraid alive alone ancient asleep average awake awesome best better complex
daily dead difficult due elder false fewer foreign former free future glad human
ill inner junior last least less male many mature maximum minimum more most
naked next numerous other outer own parallel past poisonous present ready right
same satisfactory secondary senior separate several sleepy square such superior
sure top total true upper useless very vivid whole wooden worse worst wrong
"""

OTHERS = """
a am an as at be by do go he i if in is it me my no of on or so to today tonight
up us we want wants about above across actually after afterward again against
ago ahead all almost along already also although altogether always among and
another any anybody anyone anything anyway anywhere apart are around aside away
back because been before behind being below beneath beside between beyond both
but can cannot could definitely did does down during each either else enough
even ever every everybody everyone everything everywhere except far few finally
for forever from further had has have hence her here hers herself him himself
his how however hundred indeed inside instead into its itself just later maybe
meanwhile might million mine much must myself neither never nevertheless nobody
none nor not nothing now nowhere off often once one only onto otherwise ought
our ours ourselves out outside over perhaps quite rather really regardless
seldom shall she should since some somebody somehow someone something sometimes
somewhere soon still than that the their theirs them themselves then there
therefore these they thing this those though through throughout together
tomorrow too toward twice under unless unlike until upon was well were what
whatever when whenever where whereas wherever whether which whichever while who
whoever whom whose why will with within without would yesterday yet you your
yours yourself truly wholly publicly two three four five six seven eight nine
ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety first second third fourth
fifth sixth seventh eighth ninth twelfth monday tuesday wednesday thursday
friday saturday sunday january february march april may june july august
september october november december spring summer autumn winter north south east
west front like likes quickly slowly
"""
