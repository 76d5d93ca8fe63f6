import { type Static, Type } from 'typebox';
import { isObject } from '../../base/objects.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { QueryOutcome } from '../../search/calls/query-outcome.ts';
import { totalMs } from '../../search/timings.ts';
import { type QueryOrigin, readOriginValue } from '../recording/query-origin.ts';
import type { RequestLimits } from '../server-config.ts';
import { defineDialect, type Plan, type ServerPassage } from './dialect.ts';
import { inputWith, refuse } from './parts/common-fields.ts';
import { field, type JsonObject } from './parts/read-request.ts';
import { list, text, textPassage } from './parts/reply-fields.ts';
import { pieces, searchPlan, separated } from './parts/search-plan.ts';

const NO_TOOL = { obs: '', invalid_reason: 'no valid tool found for action' };
const UNAVAILABLE = 'Search temporarily unavailable';

const Flags = Type.Array(Type.Unknown(), { description: 'One per action.' });

const Request = Type.Object({
  trajectory_ids: Type.Union([Type.Array(Type.Unknown()), Type.String()], {
    description: 'One per action; a text is the id of the only one. --record writes them.',
  }),
  actions: Type.Array(Type.String(), {
    description: 'What the policy wrote. <search>…</search> searches, <answer>…</answer> ends the trajectory.',
  }),
  finish: Type.Optional({ ...Flags, description: 'Whether the trajectory ends without an action. One per action.' }),
  is_last_step: Type.Optional(Flags),
  extra_fields: Type.Optional(
    Type.Array(Type.Unknown(), {
      description:
        'One object per action. question, index (of the question in its data set) and split are recorded; finish counts as above.',
    }),
  ),
});

const Reply = Type.Object({
  observations: Type.Array(
    Type.Union([Type.String(), Type.Object({ obs: Type.String(), invalid_reason: Type.String() })]),
    { description: 'The passages between <information> tags; a text or object without passages for other actions.' },
  ),
  dones: Type.Array(Type.Boolean({ description: 'Whether the trajectory ends.' })),
  valids: Type.Array(Type.Boolean({ description: 'Whether the action was a search that succeeded, or the end.' })),
  processing_time_ms: Type.Number(),
});

const parts = {
  path: '/get_observation',
  // For the client, an error is the observation.
  holdMs: Number.POSITIVE_INFINITY,
  request: Request,
  reply: Reply,
  example: {
    trajectory_ids: ['r-17'],
    actions: ['<think>I need the designer.</think><search>who designed the Brooklyn Bridge</search>'],
    finish: [false],
    is_last_step: [false],
    extra_fields: [{ question: 'Where was the designer of the Brooklyn Bridge born?' }],
  },
  client: {
    batch: true,
    hit: ['contents'],
    // An action for each query, answered with a text of passages. The server says how many.
    request: (queries: readonly string[]) => ({
      trajectory_ids: queries.map((_, i) => `eval-${i}`),
      actions: queries.map((query) => `<search>${query}</search>`),
      finish: queries.map(() => false),
      is_last_step: queries.map(() => false),
      extra_fields: queries.map(() => ({})),
    }),
    lists(reply: unknown) {
      const valid = list(reply, 'valids');
      return list(reply, 'observations').map((observation, i) => {
        if (valid[i] !== true && valid[i] !== 1) return { failed: 'the search was not valid' };
        return readObservation(text(observation));
      });
    },
  },
} as const;

/**
 * verl-tool's tool server with its tool `search_retrieval`: actions of trajectories in, observations out. The question of an action is
 * recorded but not embedded, because every data row has one and the original ignores it.
 */
export const verlTool = defineDialect({
  ...parts,
  name: 'verl-tool',
  summary: 'Actions of trajectories, answered with observations (verl-tool)',
  projects: [
    { name: 'verl-tool without its tool server', setting: '`tool_server_url=http://HOST:8000/get_observation`' },
  ],
  plan: (request, limits) => plan(request, limits, false),
});

/** The same for encoders trained on question and query: the question is embedded, if the template of the index has it. */
export const verlToolQuestion = defineDialect({
  ...parts,
  name: 'verl-tool-question',
  summary: 'Actions of trajectories, with the question of each embedded too (verl-tool)',
  section: 'verl-tool',
  onlyIfNamed: true,
  plan: (request, limits) => plan(request, limits, true),
});

/** What an action does: `query` if it searches. */
type Action = { readonly does: 'search'; readonly query: string } | { readonly does: 'answer' | 'finish' | 'nothing' };

function plan(request: Static<typeof Request>, limits: RequestLimits, embedsQuestion: boolean): Plan {
  const { actions, finish, is_last_step, extra_fields } = request;
  const ids = typeof request.trajectory_ids === 'string' ? [request.trajectory_ids] : request.trajectory_ids;
  const lists = { trajectory_ids: ids, finish, is_last_step, extra_fields };
  for (const [name, list] of Object.entries(lists)) checkLength(name, list, actions.length);
  const extras = actions.map((_, i) => extraFields(extra_fields?.[i], i));
  const read = actions.map((text, i) => readAction(text, finish?.[i] ?? field(extras[i]!, 'finish')));
  const searching = read.flatMap((action, i) => (action.does === 'search' ? [{ i, query: action.query }] : []));
  const queries = searching.map(({ i, query }) => {
    const question = field(extras[i]!, 'question');
    return inputWith(query, typeof question === 'string' ? question : null, null);
  });
  return searchPlan(
    {
      queries,
      k: limits.topk,
      kField: 'topk',
      limits,
      truncate: limits.truncate,
      template: embedsQuestion ? null : 'query',
      origins: searching.map(({ i }) => originOf(ids[i], extras[i]!)),
      items: { positions: searching.map(({ i }) => i), count: actions.length },
    },
    ({ outcomes, timings }) => reply(read, outcomes, totalMs(timings)),
    ({ outcomes }) => outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error])),
  );
}

/** As verl-tool's tools choose: the end first, then the last search of the action, then its answer. */
function readAction(text: string, finish: unknown): Action {
  if (isTrue(finish)) return { does: 'finish' };
  const query = [...text.matchAll(/<search>([\s\S]*?)<\/search>/g)].at(-1)?.[1];
  if (query !== undefined) return { does: 'search', query: query.trim() };
  return { does: /<answer>[\s\S]*?<\/answer>/.test(text) ? 'answer' : 'nothing' };
}

function reply(actions: readonly Action[], outcomes: readonly QueryOutcome[], ms: number): Iterable<string> {
  const searched = new Map<number, QueryOutcome>();
  for (const [i, { does }] of actions.entries()) if (does === 'search') searched.set(i, outcomes[searched.size]!);
  const observations = separated(actions, ({ does }, i) =>
    JSON.stringify(does === 'nothing' ? NO_TOOL : observation(searched.get(i))),
  );
  const dones = actions.map(({ does }) => does === 'answer' || does === 'finish');
  const valids = actions.map(({ does }, i) => does === 'finish' || searched.get(i)?.ok === true);
  const rest = JSON.stringify({ dones, valids, processing_time_ms: ms }).slice(1);
  return pieces`{"observations":[${observations}],${rest}`;
}

/** Passages as Search-R1 writes them into a prompt; a failed search is a sentence for the policy, as in the original. */
function observation(outcome: QueryOutcome | undefined): string {
  if (outcome === undefined) return '';
  const passages = outcome.ok ? outcome.hits.map(({ document }, i) => passageText(document, i + 1)) : [UNAVAILABLE];
  return `\n\n<information>${passages.join('\n').trim()}</information>\n\n`;
}

function passageText(document: string, rank: number): string {
  const [title, ...text] = documentFields(document).contents.split('\n');
  return `Doc ${rank}(Title: ${title}) ${text.join('\n')}`;
}

function checkLength(name: string, list: readonly unknown[] | undefined, actions: number): void {
  if (list === undefined || list.length === actions) return;
  refuse([name], `Expected one entry per action, got ${list.length} for ${actions} actions`);
}

function extraFields(value: unknown, i: number): JsonObject {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) refuse(['extra_fields', `${i}`], 'Input should be a valid dictionary');
  return value;
}

/** Python's truth of a JSON value. */
function isTrue(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** What an action says of its query. `index` and `split` are columns of the data that verl's preparation writes. */
function originOf(id: unknown, extras: JsonObject): QueryOrigin {
  const origin: Record<string, unknown> = {};
  for (const [name, value] of [
    ['trajectory', typeof id === 'string' ? id : JSON.stringify(id)],
    ['questionId', field(extras, 'index')],
    ['split', field(extras, 'split')],
  ] as const) {
    const read = readOriginValue(name, value);
    if (read.ok) origin[name] = read.value;
  }
  return origin;
}

/** `Doc 1(Title: "X") text`, each on a new line, numbered from 1: a text may have such a line with another number. */
function readObservation(observation: string): ServerPassage[] {
  const body = observation.replace(/^\s*<information>/, '').replace(/<\/information>\s*$/, '');
  const starts: number[] = [];
  for (let from = 0; ; ) {
    const mark = `Doc ${starts.length + 1}(Title: `;
    const found = starts.length === 0 ? body.indexOf(mark) : body.indexOf(`\n${mark}`, from);
    if (found === -1) break;
    starts.push(starts.length === 0 ? found : found + 1);
    from = found + mark.length;
  }
  return starts.map((start, i): ServerPassage => {
    const [, title, rest] = /^Doc \d+\(Title: ("?[^\n]*?"?)\) ([\s\S]*)$/.exec(body.slice(start, starts[i + 1])) ?? [];
    const name = (title ?? '').replace(/^"(.*)"$/, '$1');
    const own = (rest ?? '').trimEnd();
    // A passage of one line stands in the place of the title.
    if (own === '' && title === name) return textPassage(name);
    return { id: undefined, title: name, contents: `"${name}"\n${own}`, text: own, score: undefined };
  });
}
