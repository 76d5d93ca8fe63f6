import { type Static, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import type { RetrieveResult } from '../../search/calls/retrieve-call.ts';
import { STAGES } from '../../search/timings.ts';
import type { RequestLimits } from '../server-config.ts';
import { defineDialect, type ServerPassage } from './dialect.ts';
import { Contents, count, nullable, Queries, refuse, Score } from './parts/common-fields.ts';
import { list, member, rowPassage, textPassage } from './parts/reply-fields.ts';
import { hitLists, pieces, scoreHit, searchPlan, textHit } from './parts/search-plan.ts';

const Query = Type.Union([Type.String(), Queries], { description: 'One query or a list.' });
const Nprobe = nullable(Type.Integer(), 'Ignored: every search is exact. The reply repeats it.');
const Head = {
  message: Type.String(),
  query: Query,
  n_docs: Type.Integer(),
  nprobe: Type.Union([Type.Integer(), Type.Null()]),
};
const Scores = Type.Array(Type.Array(Score), { description: 'One list per query, best first.' });

/** What both servers have in common. */
const parts = {
  path: '/search',
  // DR Tulu's limit is 30 s.
  holdMs: 25_000,
  example: { query: 'who designed the Brooklyn Bridge', n_docs: 3 },
  keys: ['n_docs', 'queries', 'backend', 'nprobe'],
} as const;
const client = {
  batch: true,
  hit: ['contents'],
  request: (queries: readonly string[], k: number) => ({ query: queries, n_docs: k }),
} as const;

/**
 * massive-serve: one query or a list; scores, texts and places in lists of their own. A place is `[0, row]`, because an index has no
 * numbered passage files. The original keeps the `nprobe` of a request for later ones; here it has no effect.
 */
export const massiveServe = defineDialect({
  ...parts,
  name: 'massive-serve',
  summary: 'One or several queries with n_docs (massive-serve, DR Tulu)',
  projects: [
    { name: 'massive-serve', setting: 'the URL `http://HOST:8000/search`' },
    {
      name: 'DR Tulu',
      setting:
        '`MASSIVE_DS_URL=http://HOST:8000/search` in training; its [MCP tools](#connect-an-assistant-mcp) with `--mcp --mcp-tools dr-tulu`',
    },
  ],
  request: Type.Object({ query: Query, n_docs: count(1), nprobe: Nprobe }),
  reply: Type.Object({
    ...Head,
    results: Type.Object({
      scores: Scores,
      passages: Type.Array(Type.Array(Contents)),
      IDs: Type.Array(Type.Array(Type.Array(Type.Integer()), { description: '[0, row] for each passage.' })),
    }),
  }),
  client: { ...client, lists: (reply) => readLists(reply, rowPassage) },
  plan({ query, n_docs, nprobe }, limits) {
    return servedPlan({ query, n_docs, nprobe }, limits, ({ outcomes }) => {
      const ids = hitLists(outcomes, ({ row }) => `[0,${row}]`);
      return pieces`"passages":[${hitLists(outcomes, textHit)}],"IDs":[${ids}]}`;
    });
  },
});

/**
 * DS Serve: massive-serve's requests, and also a batch as `queries`; passages are objects. Options of the approximate search are
 * ignored. A search for diverse passages is refused, because Trawl orders passages by their score.
 */
export const dsServe = defineDialect({
  ...parts,
  name: 'ds-serve',
  summary: 'One or several queries with n_docs, passages as objects (DS Serve)',
  projects: [
    {
      name: 'DS Serve',
      setting: 'the URL `http://HOST:8000/search`; serve with `--dialect ds-serve` for its passages',
    },
  ],
  onlyIfNamed: true,
  // A diverse search.
  statuses: { NOT_SUPPORTED: 501 },
  request: Type.Object({
    query: nullable(Query, 'One query or a list.'),
    queries: nullable(Queries, 'A batch, in place of query.'),
    n_docs: count(10),
    nprobe: Nprobe,
    diverse_search: Type.Boolean({ default: false, description: 'true is refused with 501.' }),
  }),
  reply: Type.Object({
    ...Head,
    results: Type.Object({
      scores: Scores,
      passages: Type.Array(
        Type.Array(
          Type.Object({
            passage_id: Type.Integer({ description: "The passage's row in the index." }),
            text: Contents,
            source: Type.String({ description: 'Name of the index.' }),
          }),
        ),
      ),
    }),
    timings_ms: Type.Object(Object.fromEntries(STAGES.map((stage) => [stage, Type.Number()]))),
  }),
  client: {
    ...client,
    // A first line without quotes belongs to the text, because DS Serve's passages have no titles. Trawl puts a title in quotes.
    lists: (reply) =>
      readLists(reply, (hit, score) => {
        const passage = rowPassage(hit, score);
        return /^"[^\n]*"\n/.test(passage.contents) ? textPassage(passage.contents, score) : passage;
      }),
  },
  plan({ query, queries, n_docs, nprobe, diverse_search }, limits) {
    if (diverse_search) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        'diverse_search is true, but this server orders passages by their score only. Leave it out.',
      );
    }
    const asked = query ?? queries;
    if (asked === null) refuse(['query'], 'Expected query or queries');
    return servedPlan({ query: asked, n_docs, nprobe }, limits, ({ outcomes, timings }, index) => {
      const source = JSON.stringify(index);
      const hitText = (hit: Hit): string => `{"passage_id":${hit.row},"text":${textHit(hit)},"source":${source}}`;
      return pieces`"passages":[${hitLists(outcomes, hitText)}]},"timings_ms":${JSON.stringify(timings)}`;
    });
  },
});

/** The plan of both servers. `rest` writes the members of the reply after the scores. */
function servedPlan(
  { query, n_docs, nprobe }: { query: Static<typeof Query>; n_docs: number; nprobe: number | null },
  limits: RequestLimits,
  rest: (result: RetrieveResult, index: string) => Iterable<string>,
) {
  const queries = typeof query === 'string' ? [query] : query;
  const head = JSON.stringify({ message: 'Search completed.', query, n_docs, nprobe }).slice(0, -1);
  return searchPlan({ queries, k: n_docs, kField: 'n_docs', limits }, (result, { index }) => {
    const scores = hitLists(result.outcomes, scoreHit);
    return pieces`${head},"results":{"scores":[${scores}],${rest(result, index)}}`;
  });
}

/** `IDs` and `passage_id` are places in the server's files, not ids of passages. */
function readLists(reply: unknown, read: (hit: unknown, score: unknown) => ServerPassage): ServerPassage[][] {
  const results = member(reply, 'results');
  const scores = list(results, 'scores');
  return list(results, 'passages').map((hits, i) =>
    list(hits).map((hit, rank) => ({ ...read(hit, list(scores[i])[rank]), id: undefined })),
  );
}
