/**
 * Reads rollouts from the text of a file, in the browser: JSON lines or a JSON array. A rollout is `{id, question, answers, turns}`;
 * a turn is `{kind, text}` with the kind think, search, information, answer or text, and a search may have `passages`.
 */
import { parseKeepingBigIntegers } from './json.js';

const TAGS = {
  think: 'think',
  search: 'search',
  information: 'information',
  answer: 'answer',
  tool_response: 'information',
  result: 'information',
};
const TAGGED = /<(think|search|information|answer|tool_response|result)>([\s\S]*?)(?:<\/\1>|$)/g;
/** Fields in which trainers and evaluations write what the policy wrote. */
const TEXT_FIELDS = [
  'pred',
  'response',
  'output',
  'completion',
  'text',
  'solution_str',
  'sequences_str',
  'generated_text',
  'prediction',
];

/** Rollouts, and the lines that could not be read with the reason. */
export function readRollouts(text) {
  const { items, faults } = readItems(text);
  const records = [];
  const rollouts = [];
  for (const { value, place } of items) {
    if (isRecord(value)) records.push(value);
    // A record of a passage that was opened belongs to no search.
    if (isRecord(value) || value.opened !== undefined) continue;
    const rollout = fromItem(value, place);
    if (rollout === null) faults.push(`${place}: no searches and no text of a rollout`);
    else rollouts.push(rollout);
  }
  return { rollouts: [...fromRecords(records), ...rollouts], faults };
}

function readItems(text) {
  const faults = [];
  if (/^\s*\[/.test(text)) {
    try {
      const list = parseKeepingBigIntegers(text);
      return {
        items: list.map((value, i) => ({ value, place: `item ${i + 1}` })).filter(({ value }) => isObject(value)),
        faults,
      };
    } catch (error) {
      return { items: [], faults: [`the file is not JSON: ${error.message}`] };
    }
  }
  const items = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      const value = parseKeepingBigIntegers(line);
      if (!isObject(value)) throw new Error('not an object');
      items.push({ value, place: `line ${i + 1}` });
    } catch (error) {
      faults.push(`line ${i + 1}: ${error.message}`);
    }
  }
  return { items, faults };
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A line of `trawl serve --record`. */
function isRecord(value) {
  return (
    typeof value.query === 'string' &&
    typeof value.requestId === 'string' &&
    (Array.isArray(value.rows) || value.error !== undefined)
  );
}

/** Trajectories of another data set, policy, step or split are others; a search without a trajectory stands alone. */
function fromRecords(records) {
  const groups = Map.groupBy(records, ({ trajectory, dataset, policy, step, split, requestId, place }) =>
    JSON.stringify(trajectory === undefined ? [requestId, place] : [trajectory, dataset, policy, step, split]),
  );
  return [...groups.values()].map((group) => {
    const searches = group.toSorted(
      (a, b) => (a.turn ?? 0) - (b.turn ?? 0) || String(a.time).localeCompare(String(b.time)),
    );
    const [{ trajectory, requestId, question }] = searches;
    return { id: trajectory ?? requestId, question, answers: [], turns: searches.map(recordedTurn) };
  });
}

function recordedTurn({ query, question, turn, rows = [], ids = [], scores = [], error, index, indexes, generation }) {
  const passages = rows.map((row, i) => ({
    row,
    id: ids[i] ?? undefined,
    score: scores[i] ?? undefined,
    index: indexes?.[i] ?? index,
    group: indexes === undefined ? undefined : index,
    recorded: generation,
  }));
  return { kind: 'search', text: query, question, number: turn, passages, error };
}

function fromItem(value, place) {
  const id = String(value.id ?? value.trajectory ?? value.uid ?? place);
  const question = firstText(value, ['question', 'query', 'problem', 'prompt']);
  const answers = [value.golden_answers, value.answers, value.answer, value.ground_truth]
    .flat()
    .filter((text) => typeof text === 'string');
  const turns = searchesOf(value) ?? messageTurns(value.messages ?? value.conversations) ?? taggedTurns(value);
  return turns === null || turns.length === 0 ? null : { id, question, answers, turns };
}

/** Agentic-R's step 1: the searches have the keys "0", "1", …, and the answer is in `pred`. */
function searchesOf({ output }) {
  const results = isObject(output) ? output.retrieval_results : undefined;
  if (!isObject(results)) return null;
  const searches = Object.keys(results)
    .sort((a, b) => Number(a) - Number(b))
    .map((key) => {
      const { query, docs } = results[key] ?? {};
      const passages = Array.isArray(docs) ? docs.filter(isObject).map(givenPassage) : [];
      return { kind: 'search', text: String(query ?? ''), passages };
    });
  return typeof output.pred === 'string' ? [...searches, { kind: 'answer', text: output.pred }] : searches;
}

function givenPassage({ id, docid, title, contents, text }) {
  return { id: id ?? docid ?? undefined, title, text: typeof contents === 'string' ? contents : text };
}

function messageTurns(messages) {
  if (!Array.isArray(messages)) return null;
  return messages.filter(isObject).flatMap(({ role, from, content, value, tool_calls: calls }) => {
    const who = role ?? from;
    const text = typeof content === 'string' ? content : typeof value === 'string' ? value : '';
    const called = (Array.isArray(calls) ? calls : []).map((call) => ({
      kind: 'search',
      text: String(call?.function?.arguments ?? ''),
    }));
    if (who === 'tool' || who === 'observation') return [{ kind: 'information', text }];
    return [...(text.trim() === '' ? [] : (splitTags(text) ?? [{ kind: 'text', text, role: who }])), ...called];
  });
}

function taggedTurns(value) {
  const fields = isObject(value.output) ? { ...value, ...value.output } : value;
  for (const name of TEXT_FIELDS) {
    const turns = typeof fields[name] === 'string' ? splitTags(fields[name]) : null;
    if (turns !== null) return turns;
  }
  return null;
}

/** The parts between tags, and what stands outside of them; `null` for a text without tags. */
function splitTags(text) {
  const turns = [];
  let end = 0;
  for (const { 0: whole, 1: tag, 2: inside, index } of text.matchAll(TAGGED)) {
    if (text.slice(end, index).trim() !== '') turns.push({ kind: 'text', text: text.slice(end, index).trim() });
    turns.push({ kind: TAGS[tag], text: inside.trim() });
    end = index + whole.length;
  }
  if (turns.length === 0) return null;
  if (text.slice(end).trim() !== '') turns.push({ kind: 'text', text: text.slice(end).trim() });
  return turns;
}

function firstText(value, names) {
  for (const name of names) if (typeof value[name] === 'string') return value[name];
  return undefined;
}
