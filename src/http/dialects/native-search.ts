import { Type } from 'typebox';
import { TRUNCATE_SIDES } from '../../embedding/text-encoder.ts';
import type { TrawlError } from '../../errors.ts';
import type { QueryOutcome, Retriever } from '../../retrieval/retriever.ts';
import { addTimings, NO_TIMINGS, STAGES, type StageTimings } from '../../retrieval/timings.ts';
import { ERROR_STATUS } from '../error-status.ts';
import { EventLoopTurn } from '../event-loop-turn.ts';
import { excerpt } from '../excerpt.ts';
import {
  type Candidate,
  DEDUPLICATIONS,
  FUSIONS,
  type Fused,
  fuse,
  type Selected,
  type Selection,
  select,
} from '../fusion.ts';
import { Contents, Document, nullable, Score } from './common-fields.ts';
import { defineDialect, type RequestLimits } from './dialect.ts';
import { refuseTooLargeK, separated } from './search-plan.ts';

const Cuts = Type.String({ description: 'nothing, tail, question or question-and-tail.' });

const HitFields = {
  row: Type.Integer({ description: 'Number of the passage in the index.' }),
  id: Type.Optional(Type.Unknown({ description: 'As the corpus has it; absent where it has none.' })),
  title: Type.Optional(Type.String()),
  score: Score,
  text: Contents,
  whole: Type.Boolean({ description: 'False where text is an excerpt.' }),
  document: Type.Optional(Document),
};

const QueryResult = Type.Object({
  ok: Type.Literal(true),
  embedded: Type.Object({
    text: Type.String({ description: 'What was embedded, prefix included, before the limit cut it.' }),
    tokens: Type.Integer({ description: 'Tokens embedded, special tokens included.' }),
    cut: Cuts,
  }),
  certificate: Type.Object({
    exact: Type.Boolean({ description: 'No other passage belongs among the hits.' }),
    rescored: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'Rows scored exactly beside the scan of the codes, which depends on the batch; null where every row is.',
    }),
  }),
  hits: Type.Optional(Type.Array(Type.Object(HitFields), { description: 'Best first; absent with fuse.' })),
});

const FailedQuery = Type.Object({
  ok: Type.Literal(false),
  error: Type.Object({ code: Type.String(), message: Type.String() }),
});

/**
 * Our own search, with what an agent's loop needs: questions beside queries, passages it has seen left out, several
 * queries fused into one list, excerpts. Unlike in the others' dialects an unknown field is refused.
 */
export const nativeSearch = defineDialect({
  name: 'native',
  path: '/v1/search',
  summary: 'Search with fusion, exclusion and excerpts',
  request: Type.Object(
    {
      queries: Type.Array(
        Type.Union([
          Type.String(),
          Type.Object(
            { question: nullable(Type.String(), 'The question that the query serves.'), query: Type.String() },
            { additionalProperties: false },
          ),
        ]),
        { description: 'Texts, or sub-queries with the question they serve.' },
      ),
      index: nullable(Type.String(), 'Name of the index; absent, the one in the URL, else the default.'),
      k: nullable(Type.Integer({ minimum: 1 }), "Hits per list; absent, the server's default."),
      minScore: nullable(Type.Number(), 'Hits below it are left out.'),
      exclude: Type.Array(Type.Union([Type.String(), Type.Integer()]), {
        default: [],
        description: 'Ids of passages to leave out; integers beyond 2^53 as strings.',
      }),
      fuse: Type.Enum([...FUSIONS], { default: 'none', description: 'One list from the lists of all queries.' }),
      deduplicate: nullable(
        Type.Enum([...DEDUPLICATIONS]),
        'What comes once in all lists of the reply. Absent: passage with fuse, none without.',
      ),
      candidates: nullable(
        Type.Integer({ minimum: 1 }),
        'Hits of each query that fusion looks at, besides those left out; at least k. Absent: the greater of 10 and 2 k.',
      ),
      maxChars: nullable(Type.Integer({ minimum: 20 }), 'Longest text of a hit; absent, the whole passage.'),
      documents: Type.Boolean({ default: false, description: 'Whether hits carry their whole row.' }),
      truncate: Type.Enum([...TRUNCATE_SIDES], {
        default: 'tail',
        description: 'What gives way where question and query together have more tokens than the model takes.',
      }),
    },
    { additionalProperties: false },
  ),
  reply: Type.Object({
    index: Type.Object({ name: Type.String(), generation: Type.String() }),
    results: Type.Array(Type.Union([QueryResult, FailedQuery]), { description: 'One per query, in their order.' }),
    hits: Type.Optional(
      Type.Array(
        Type.Object({
          ...HitFields,
          fused: Type.Number({ description: 'What the list is ordered by.' }),
          from: Type.Array(Type.Object({ query: Type.Integer(), rank: Type.Integer(), score: Score })),
        }),
        { description: 'The fused list, best first.' },
      ),
    ),
    timings: Type.Object({
      queueMs: Type.Number(),
      embedMs: Type.Number(),
      searchMs: Type.Number(),
      fetchMs: Type.Number(),
    }),
  }),
  example: {
    queries: [
      { question: 'Where was the designer of the Brooklyn Bridge born?', query: 'designer of the Brooklyn Bridge' },
      'John A. Roebling birthplace',
    ],
    k: 3,
    fuse: 'rrf',
    exclude: ['s-0003'],
    maxChars: 200,
  },
  plan(request, limits) {
    const { queries, maxChars, documents, truncate } = request;
    const k = request.k ?? limits.topk;
    refuseTooLargeK(k, 'k', queries.length, limits);
    const selection: Selection = {
      k,
      minScore: request.minScore,
      excluded: new Set(request.exclude.map(String)),
      deduplicate: request.deduplicate ?? (request.fuse === 'none' ? 'none' : 'passage'),
    };
    const inputs = queries.map((query) =>
      typeof query === 'string' ? query : { question: query.question ?? '', query: query.query },
    );
    const words = queries.map((query) => (typeof query === 'string' ? query : query.query));
    return {
      queries: queries.length,
      k,
      index: request.index,
      async run(retriever, signal) {
        const turn = new EventLoopTurn(signal);
        const wanted = wantedHits(selection, request);
        let depth = Math.min(wanted + selection.excluded.size, deepestDepth(queries.length, k, limits));
        const deepest = deepestDepth(queries.length, k, limits);
        let timings = NO_TIMINGS;
        let outcomes: readonly QueryOutcome[];
        let lists: readonly Selected[];
        for (;;) {
          const result = await retriever.retrieve({ queries: inputs, k: depth, truncate, signal });
          timings = addTimings(timings, result.timings);
          outcomes = result.outcomes;
          const separate = request.fuse === 'none';
          lists = await select(outcomes, selection, { length: separate ? k : wanted, acrossLists: separate }, turn);
          // Where what was left out has left a list short, there may be more further down.
          const short = lists.some(({ full }, i) => !full && hasMore(outcomes[i]!, depth));
          if (!short || depth >= deepest) break;
          depth = Math.min(deepest, depth * 4);
        }
        const fused = request.fuse === 'none' ? undefined : await fuse(lists, request.fuse, selection, turn);
        const text = (hit: Candidate, query: number): string => hitText(hit, words[query]!, maxChars, documents);
        return {
          timings,
          truncated: outcomes.filter((outcome) => outcome.ok && outcome.truncated).length,
          failures: outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error])),
          pieces: reply(retriever, outcomes, fused === undefined ? lists : undefined, fused, timings, text),
        };
      },
    };
  },
});

/** Hits of each query that are looked at, besides those that are left out. */
function wantedHits(
  { k, deduplicate }: Selection,
  request: { readonly fuse: string; readonly candidates: number | null },
): number {
  if (request.fuse === 'none' && deduplicate === 'none') return k;
  return Math.max(k, request.candidates ?? Math.max(10, 2 * k));
}

function deepestDepth(queries: number, k: number, limits: RequestLimits): number {
  return Math.max(k, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, queries))));
}

function hasMore(outcome: QueryOutcome, depth: number): boolean {
  return outcome.ok && outcome.hits.length >= depth;
}

function* reply(
  { info }: Retriever,
  outcomes: readonly QueryOutcome[],
  lists: readonly Selected[] | undefined,
  fused: readonly Fused[] | undefined,
  timings: StageTimings,
  text: (hit: Candidate, query: number) => string,
): Generator<string> {
  yield `{"index":${JSON.stringify({ name: info.index, generation: info.generation })},"results":[`;
  for (const [i, outcome] of outcomes.entries()) {
    if (i > 0) yield ',';
    if (!outcome.ok) {
      yield JSON.stringify({ ok: false, error: told(outcome.error) });
      continue;
    }
    const { text: embedded, tokens, cut, certificate } = outcome;
    yield JSON.stringify({ ok: true, embedded: { text: embedded, tokens, cut }, certificate }).slice(0, -1);
    if (lists !== undefined) {
      yield ',"hits":[';
      yield* separated(lists[i]!.candidates, (hit) => `${text(hit, i)}}`);
      yield ']';
    }
    yield '}';
  }
  yield ']';
  if (fused !== undefined) {
    yield ',"hits":[';
    yield* separated(
      fused,
      ({ best, score, from }) =>
        `${text(best, from[0]!.query)},"fused":${JSON.stringify(score)},"from":${JSON.stringify(from)}}`,
    );
    yield ']';
  }
  const rounds = STAGES.map((stage) => [`${stage}Ms`, rounded(timings[stage])]);
  yield `,"timings":${JSON.stringify(Object.fromEntries(rounds))}}`;
}

/** A hit without its closing brace. */
function hitText({ hit, fields }: Candidate, words: string, maxChars: number | null, documents: boolean): string {
  const { text, whole } =
    maxChars === null ? { text: fields.contents, whole: true } : excerpt(fields.contents, words, maxChars);
  const id = fields.idJson === undefined ? '' : `,"id":${fields.idJson}`;
  const title = fields.title === undefined ? '' : `,"title":${JSON.stringify(fields.title)}`;
  const rest = `,"score":${JSON.stringify(hit.score)},"text":${JSON.stringify(text)},"whole":${whole}`;
  return `{"row":${hit.row}${id}${title}${rest}${documents ? `,"document":${hit.document}` : ''}`;
}

function told({ code, message }: TrawlError): { code: string; message: string } {
  return ERROR_STATUS[code] === 500
    ? { code, message: 'The server failed on this query. Its log has the details.' }
    : { code, message };
}

function rounded(ms: number): number {
  return Number(ms.toFixed(3));
}
