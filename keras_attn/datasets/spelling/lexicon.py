"""Common English words, by how they are inflected.

`families` makes the other forms by the rules of `english_forms`.
"""

# Regular: answer, answers, answered, answering.
VERBS = """
accept accompany accuse achieve acknowledge acquire adapt add address adjust
admire admit adopt advance advise afford agree aim allow amuse analyze announce
annoy answer anticipate apologize appear applaud apply appoint appreciate
approach approve argue arrange arrest arrive ask assemble assess assign assist
associate assume attach attack attempt attend attract avoid balance believe
belong benefit borrow bother breathe calculate call cancel capture celebrate
challenge change charge chase check cheer claim classify clean climb close
collapse collect combine comfort command commit communicate compare compete
complain complete concentrate concern confess confirm confuse connect consider
consist construct consult contact contain continue contribute control convert
convince cook copy correct count cover crash create criticize cross damage dance
decide declare decorate decrease define delay deliver demand demonstrate deny
depend describe deserve destroy detect develop differ disagree disappear
disappoint discover discuss divide doubt drag earn educate embarrass emphasize
employ enable encourage enjoy enter entertain escape establish estimate evaluate
examine exceed exchange excuse exercise exist expand expect experience explain
explode explore express extend fail fasten fetch finish fix follow force
frighten fulfill gather govern grant guarantee guess guide happen hate help
hesitate hope hurry identify ignore imagine imitate improve include increase
indicate influence inform injure insist inspect install intend interfere
interpret interrupt introduce invent investigate invite join judge jump justify
kick knock laugh launch learn lift listen live look maintain manage march marry
match matter measure mention modify move multiply murder need neglect notice
obey object obtain occupy occur offer open operate oppose order organize owe
paint participate pass perform permit persuade plan play please point possess
pour practice praise predict prefer prepare preserve pretend prevent proceed
produce promise pronounce propose protect prove provide publish pull punish push
qualify question reach realize receive recognize recommend record recover reduce
refer reflect refuse regret reject relax release rely remain remember remind
remove repair repeat replace reply represent request require rescue resemble
resist resolve respect respond rest restore retire return reveal review reward
ruin rush satisfy save scare schedule scratch scream search select separate
serve settle share shout show sign smile solve specify start stop stretch
struggle study submit succeed suffer suggest supply support suppose surprise
surround suspect tempt thank threaten touch train transfer translate transport
travel treat trust try turn unite use vanish vary visit vote voyage wait walk
wander want warn wash waste watch whisper whistle wish wonder work worry wrap
yawn
"""

# The base form, the past tense, the participle.
IRREGULAR_VERBS = """
become became become|begin began begun|bend bent bent|bite bit bitten
blow blew blown|break broke broken|bring brought brought|build built built
buy bought bought|catch caught caught|choose chose chosen|come came come
cost cost cost|creep crept crept|cut cut cut|dig dug dug|do did done
draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten
fall fell fallen|feed fed fed|feel felt felt|fight fought fought
find found found|fly flew flown|forbid forbade forbidden|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given
go went gone|grow grew grown|hang hung hung|hear heard heard|hide hid hidden
hit hit hit|hold held held|hurt hurt hurt|keep kept kept|know knew known
lay laid laid|lead led led|leave left left|lend lent lent|let let let
lose lost lost|make made made|mean meant meant|meet met met
overcome overcame overcome|pay paid paid|put put put|quit quit quit
read read read|ride rode ridden|ring rang rung|rise rose risen|run ran run
say said said|see saw seen|seek sought sought|sell sold sold|send sent sent
set set set|shake shook shaken|shine shone shone|shoot shot shot|shut shut shut
sing sang sung|sink sank sunk|sit sat sat|sleep slept slept|speak spoke spoken
spend spent spent|split split split|spread spread spread|stand stood stood
steal stole stolen|stick stuck stuck|strike struck struck|swear swore sworn
sweep swept swept|swim swam swum|swing swung swung|take took taken
teach taught taught|tear tore torn|tell told told|think thought thought
throw threw thrown|understand understood understood|wake woke woken
wear wore worn|win won won|write wrote written
"""

# Words that are not made by a rule and belong together.
RELATED_FORMS = """
have has had having|show shown
"""

# Regular: ability, abilities.
NOUNS = """
ability absence accident account achievement actor actress address advantage
adventure advertisement afternoon age agreement air airport alternative
ambulance amount animal anniversary announcement apartment appearance apple
appointment approach argument arm arrangement arrival art article aspect
assignment assistant athlete atmosphere attempt attitude audience aunt author
baby back bag ball balloon band bank bar base basket bathroom battery beach bed
beginning behavior belief bell bicycle bird birthday blanket block blood board
boat body bone book bottle bottom boundary bowl box boy breakfast breath bridge
brother brush building bus business cake calendar camera camp candidate capital
captain car card care career carpenter carrot case castle cat category ceiling
celebration cell cent century certificate chain chair challenge champion chance
channel chapter character chart chest choice church cigarette circle
circumstance citizen city classroom climate clock cloud club coach coast coat
coin colleague collection college color column combination comment committee
community companion company comparison competition complaint computer concept
concert conclusion condition conference connection conscience consequence
construction conversation corn corner council country courage course court
cousin cow creature criminal criticism crowd crown cry cup curtain customer
cycle dance date daughter day deal death debt decade decision definition degree
department description desert desire desk detail development device dictionary
difference difficulty dinner direction director disaster discipline discovery
discussion disease disk distance doctor dog door dozen drawer dream dress driver
duck dust duty ear earth economy edge edition editor education effect effort egg
election element elephant emergency emotion employee employer end enemy engine
engineer entrance envelope environment equation error evening event example
exception exhibition existence expense experience experiment expert explanation
expression eye face fact factor factory failure fair family farm farmer fault
favorite fear feature feeling field figure film finger fire flag flight floor
flow flower fold force foreigner forest form fortune foundation frame freedom
friend friendship function furnace game garden gate generation gift giraffe girl
glove goal gold government grammar grandfather grandmother group guard guest
guitar habit hair hall hammer hand handkerchief hat head heart heaven height hen
highway hill history hole holiday horizon horse hospital hotel hour house
husband ice idea identity illness image immigrant importance impression
improvement inch incident income individual industry ingredient inhabitant
injury instance institution instruction instrument intention interest interval
interview introduction invention invitation iron island item jacket jewel job
joke journal journey joy key kilometer king kingdom kitchen ladder lake lamp
land lane language law lawyer layer leader lecture leg lemon lesson letter level
library license lie limit line lion lip list load location loss luck lunch
machine magazine mail majority manager manner map mark market mass material
mathematician meaning measurement mechanic medicine meeting member memory
merchant message method mile millennium mind minister minority minute miracle
mirror mistake mixture model moment money month monument moon morning mountain
mouth movement muscle museum musician mystery myth nail name narrator necessity
neck neighbor nephew nest net newspaper niece night noise nose note notebook
novel nuisance number nurse occasion occurrence ocean officer oil onion
operation opinion opponent opportunity option orange orchestra organization
origin owner pack package page pain pair palace paragraph parent park parliament
part particle partner party passage passenger path patient pattern payment pear
pen penalty percentage performance period permission person personality
philosopher phone photo photograph phrase physician pianist picture piece pigeon
pilot pipe place plane planet plant plate platform pleasure pocket poem point
poison pole policy politician pool population position possession possibility
post potato pound power presence president pressure price principle priority
prisoner privilege prize problem procedure process product profession program
progress project promise pronunciation proof property proposal protection
province publisher purchase purpose quality quantity quarter queen rabbit race
rain range rate reaction reader reason receipt recipe recommendation reference
region relationship relative religion repetition representative republic
reputation requirement research resource responsibility restaurant result
revolution rhythm ribbon river rock role roof room roommate root rope rule
sandwich scene scholar school science scientist sea seat secretary section
security sense sentence sergeant servant service shadow shape shelter ship shirt
shoe shop shoulder side sign signature silence singer sister situation size
skill skin sky sleep snake snow sofa soil soldier solution song soul sound
source souvenir space specimen speech speed spirit sport spot stage stair star
station step stomach stone store storm story stranger strategy stream street
string structure student style subject substance success suggestion suit
suitcase summary sun surface surgeon surprise sweater symbol sympathy symptom
system table talent target task teacher team technique technology telephone
television temperature temple term territory test text theater theory
thermometer thing thousand thumb ticket time tip title tomato tongue tool
tournament town toy trade tradition tragedy transition traveler treasure tree
trial trip trouble truck tube turtle type umbrella umpire uncle uniform unit
universe university user vacation vacuum valley value variety vegetable vehicle
version victim victory view village violence visitor voice volume volunteer wall
war warrior water wave way weapon wedding week weekend weight wheel wind window
wing winner wire witness word world wound writer yard year zone
"""

# Without a plural: advice.
MASS_NOUNS = """
advice anger beauty beer biology bravery bread butter cheese chemistry clothing
coffee confidence curiosity darkness electricity equipment evidence flour
furniture gasoline geography happiness health homework honesty honor hunger
independence information insurance jealousy justice kindness knowledge laughter
laziness leisure lightning literature loneliness luggage maintenance mathematics
meat milk music nature patience peace physics pollution pottery poverty
psychology rice sadness safety salt sand silver soup sugar tea tobacco traffic
truth weakness wealth weather wine wisdom wood
"""

IRREGULAR_PLURALS = """
analysis analyses|child children|crisis crises|echo echoes|foot feet|goose geese
half halves|hero heroes|knife knives|leaf leaves|life lives|loaf loaves|man men
mouse mice|phenomenon phenomena|shelf shelves|thief thieves|tooth teeth
wife wives|wolf wolves|woman women
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

# Compared with endings: brave, braver, bravest.
GRADED_ADJECTIVES = """
angry big brave brief bright broad busy calm cheap clean clear clever close cold
cool crazy cruel dark deep dirty dry early easy empty fast fat fierce fine flat
fresh friendly full funny gentle great guilty happy hard healthy heavy high hot
hungry kind large late lazy light lonely long loud low lucky near neat new nice
noisy old plain polite poor pretty proud pure quick quiet rare rich rough rude
sad safe sharp short silly simple slow small smart smooth soft steep strange
strict strong sweet tall thick thin thirsty tight tiny ugly warm weak wet wide
wild wise young
"""

# In this form only.
PLAIN_ADJECTIVES = """
afraid alive alone ancient asleep average awake awesome beautiful best better
black blue bored boring brown closed complex daily dangerous dead difficult due
elder elegant expensive false famous fewer foreign former free french future
german glad gray green human ill inner intelligent interesting junior last least
less male many mature maximum mexican minimum modern more most naked nervous
next numerous open other outer own parallel past poisonous present ready red
right same satisfactory secondary senior separate several sick sleepy square
such superior sure tired top total true upper useless very vivid white whole
wooden worse worst wrong yellow
"""
OTHERS = """
a am an as at be by do go he i if in is it me my no of on or so to today tonight
up us we want wants about above across actually after afterward again against
ago ahead all almost along already also although altogether always among and
another any anybody anyone anything anyway anywhere apart are around aside away
back because been before behind being below beneath beside between beyond both
but can cannot could definitely did does down during each either else enough
even ever every everybody everyone everything everywhere except far few finally
for forever from further hence her here hers herself him himself his how however
hundred indeed inside instead into its itself just later maybe meanwhile might
million mine much must myself neither never nevertheless nobody none nor not
nothing now nowhere off often once one only onto otherwise ought our ours
ourselves out outside over perhaps quite rather really regardless seldom shall
she should since some somebody somehow someone something sometimes somewhere
soon still than that the their theirs them themselves then there therefore these
they thing this those though through throughout together tomorrow too toward
twice under unless unlike until upon was well were what whatever when whenever
where whereas wherever whether which whichever while who whoever whom whose why
will with within without would yesterday yet you your yours yourself truly
wholly publicly two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty
forty fifty sixty seventy eighty ninety first second third fourth fifth sixth
seventh eighth ninth twelfth monday tuesday wednesday thursday friday saturday
sunday january february march april may june july august september october
november december spring summer autumn winter north south east west front like
likes quickly slowly
"""
