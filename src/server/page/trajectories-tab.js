/** The trajectories tab: rollouts of a file that the reader chooses, turn by turn with what each search showed. */
import { load, make, say } from './dom.js';
import { markWords, titleAndText, wordMatcher } from './highlight.js';
import { readRollouts } from './read-rollouts.js';
import { addTexts, generationNotices } from './recorded-passages.js';
import { goTo } from './tabs.js';

const MAX_FILE_BYTES = 200 * 2 ** 20;
const TITLES = {
  think: 'Reasoning',
  search: 'Search',
  information: 'Shown to the agent',
  answer: 'Answer',
  text: 'Text',
};

let view;
let rollouts = [];
let at = 0;
/** Counts what the reader chose, so that a file or passages that arrive after a later choice are not shown. */
let choices = 0;

export async function open(panel) {
  await load('trajectories.css');
  view ??= build(panel);
}

function build(panel) {
  const file = make('input', { id: 'rollout-file', type: 'file', accept: '.jsonl,.json,.ndjson,application/json' });
  const select = make('select', { id: 'rollout', 'aria-label': 'Rollout' });
  const previous = make('button', { type: 'button', class: 'quiet', onclick: () => show(at - 1) }, 'Previous');
  const next = make('button', { type: 'button', class: 'quiet', onclick: () => show(at + 1) }, 'Next');
  const bar = make('div', { class: 'rollout-bar', hidden: true }, previous, select, next);
  const notice = make('div', { class: 'notice', hidden: true });
  const shown = make('div', {});
  file.addEventListener('change', () => readFile(file.files[0]));
  select.addEventListener('change', () => show(Number(select.value)));
  panel.addEventListener('dragover', (event) => event.preventDefault());
  panel.addEventListener('drop', (event) => {
    event.preventDefault();
    readFile(event.dataTransfer.files[0]);
  });
  const help = [
    'A file of ',
    make('code', {}, 'trawl serve --record'),
    ', of Agentic-R’s step 1, or with texts or messages of rollouts (',
    make('code', {}, '<search>, <information>, <answer>'),
    '), as JSON lines or a JSON array. It is read in the browser and not sent anywhere; passages that the file names only by row are read from the index.',
  ];
  panel.replaceChildren(
    make('h1', {}, 'A rollout, turn by turn'),
    make(
      'div',
      { class: 'card rollout-file' },
      make('div', { class: 'field' }, make('label', { for: 'rollout-file' }, 'File of rollouts'), file),
      make('p', { class: 'help' }, ...help),
    ),
    notice,
    bar,
    shown,
  );
  return { select, previous, next, bar, notice, shown };
}

async function readFile(file) {
  if (file === undefined) return;
  choices++;
  const mine = choices;
  view.bar.hidden = true;
  view.shown.replaceChildren();
  if (file.size > MAX_FILE_BYTES)
    return tell(`The file has ${Math.round(file.size / 2 ** 20)} MiB; the limit of the page is 200 MiB.`);
  const text = await file.text().catch((error) => error);
  if (mine !== choices) return;
  if (text instanceof Error) return tell(`${file.name} could not be read: ${text.message}`);
  const read = readRollouts(text);
  rollouts = read.rollouts;
  const some = read.faults.slice(0, 3).join('; ');
  const left =
    read.faults.length === 0 ? '' : `${read.faults.length} left out: ${some}${read.faults.length > 3 ? '; …' : ''}.`;
  if (rollouts.length === 0) return tell(`${file.name} has no rollouts. ${left}`);
  view.notice.hidden = left === '';
  view.notice.textContent = left;
  view.select.replaceChildren(
    ...rollouts.map(({ id, question }, i) =>
      make('option', { value: String(i) }, `${i + 1}. ${id}${question ? ` · ${question.slice(0, 80)}` : ''}`),
    ),
  );
  view.bar.hidden = false;
  await show(0);
}

function tell(text) {
  view.notice.textContent = text;
  view.notice.hidden = false;
  say(text);
}

async function show(number) {
  at = Math.min(Math.max(0, number), rollouts.length - 1);
  view.select.value = String(at);
  view.previous.disabled = at === 0;
  view.next.disabled = at === rollouts.length - 1;
  const rollout = rollouts[at];
  choices++;
  const mine = choices;
  await addTexts(rollout);
  if (mine !== choices) return;
  const seen = new Map();
  const { id, question, answers, turns } = rollout;
  const shown = [make('h2', {}, id)];
  if (question !== undefined) shown.push(make('p', { class: 'rollout-question', dir: 'auto' }, question));
  if (answers.length > 0) shown.push(make('p', { class: 'help' }, `Golden answers: ${answers.join(' · ')}`));
  shown.push(make('ol', { class: 'turns' }, ...turns.map((turn, i) => turnItem(turn, i, rollout, seen))));
  view.shown.replaceChildren(...shown);
  const searches = turns.filter(({ kind }) => kind === 'search').length;
  say(`${id}: ${searches === 1 ? '1 search' : `${searches} searches`}`);
}

function turnItem(turn, i, rollout, seen) {
  const { kind, text, passages = [], error } = turn;
  // A record has the turn's number, which can differ from its place in the rollout; passages that come again refer to the name shown.
  const step = passages.length === 0 ? '' : `step ${i + 1}`;
  const name = turn.number === undefined ? step : `turn ${turn.number}`;
  const head = make(
    'div',
    { class: 'turn-head' },
    make('span', { class: `turn-kind ${kind}` }, turn.role ?? TITLES[kind]),
    make('span', { class: 'help' }, name),
  );
  if (kind === 'search') {
    const parameters = rollout.question ? { q: rollout.question, s: text } : { s: text };
    head.append(
      make('button', { type: 'button', class: 'link', onclick: () => goTo('search', parameters) }, 'Search for it now'),
    );
  }
  const matcher = wordMatcher(undefined, rollout.answers.join(' '));
  const body = make(
    'p',
    { class: 'text', dir: 'auto' },
    ...(kind === 'information' || kind === 'answer' ? markWords(text, matcher) : [text]),
  );
  const items = passages.map((passage) => passageItem(passage, name, seen, matcher));
  const failure = error === undefined ? null : make('p', { class: 'notice error' }, `The search failed: ${error}`);
  return make(
    'li',
    { class: `card turn ${kind}` },
    head,
    body,
    failure,
    ...generationNotices(passages),
    items.length === 0 ? null : make('ol', { class: 'shown' }, ...items),
  );
}

function passageItem(passage, turnName, seen, matcher) {
  const { id, row, index = '' } = passage;
  const name = id !== undefined ? `id ${id}` : row !== undefined ? `row ${row}` : 'no id';
  const key = `${index}/${id ?? row ?? passage.text}`;
  const earlier = seen.get(key);
  if (earlier === undefined) seen.set(key, turnName);
  const again = earlier === undefined ? null : make('span', { class: 'badge' }, `shown before, in ${earlier}`);
  const score = passage.score === undefined ? null : make('span', { class: 'help' }, Number(passage.score).toFixed(4));
  const facts = [make('bdi', { class: 'id' }, name), ' ', score, again];
  if (passage.text === undefined) {
    return make('li', {}, ...facts, make('p', { class: 'help' }, passage.missing ?? 'no text in the file'));
  }
  const { title, text } = titleAndText(passage);
  const summary = make('summary', {}, make('strong', {}, make('bdi', {}, title || name)), ' ', ...facts);
  const body = make('p', { class: 'text', dir: 'auto' }, ...markWords(text, matcher));
  return make('li', {}, make('details', {}, summary, body));
}
