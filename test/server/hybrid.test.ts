import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { resolveServerConfig } from '../../src/server/server-config.ts';

import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { postTo } from './build.ts';
import { type Answer, encoderPools, type ServedHit, served } from './served-index.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
const both = join(folder, 'both');
const dense = join(folder, 'dense');
const words = join(folder, 'words');
before(async () => {
  if (!loaded.ok) return;
  const model = ['--model', 'token-average-256', '--quiet'];
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', both, '--bm25', ...model]);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', dense, ...model]);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', words, '--bm25', '--quiet']);
});

const QUERY = 'Who designed the Brooklyn Bridge over the East River?';

const hitsOf = ({ status, body }: Answer): ServedHit[] => {
  assert.equal(status, 200, JSON.stringify(body));
  return body.results[0]!.hits;
};
const search = { queries: [QUERY], k: 5, mode: 'hybrid' };
const rrf = { fusion: 'rrf' } as const;

test('/v1/search tells where each list has a hit, with the ranks and scores of a search in that mode', {
  skip,
}, async () => {
  await served(both, async (post) => {
    const answer = await post('/v1/search', { ...search, k: 20, hybrid: { ...rrf, depth: 100 } });
    assert.equal(answer.body.mode, 'hybrid');
    assert.equal((answer.body.results[0]!.certificate as { depth: number }).depth, 100);
    const lists = await Promise.all(
      (['dense', 'bm25'] as const).map(async (mode) => hitsOf(await post('/v1/search', { ...search, mode, k: 100 }))),
    );
    const fused = hitsOf(answer);
    assert.equal(fused.length, 20);
    for (const hit of fused) {
      const places = lists.map((list) => {
        const at = list.findIndex(({ row }) => row === hit.row);
        return at < 0 ? null : { rank: at + 1, score: list[at]!.score };
      });
      assert.deepEqual([hit.dense, hit.bm25], places);
      const sum = places.reduce((total, place) => total + (place === null ? 0 : 1 / (10 + place.rank)), 0);
      assert.equal(hit.score, Math.fround(sum));
    }
    const [usual] = hitsOf(await post('/v1/search', { ...search, mode: 'dense' }));
    assert.ok(!('dense' in usual!) && !('bm25' in usual!), 'other modes have no places');
  });
});

test('the settings come from the request, then from the server, then from the defaults', { skip }, async () => {
  await served(
    both,
    async (post) => {
      const server = { mode: 'hybrid', hybrid: { fusion: 'rrf', denseWeight: 0.9, bm25Weight: 0.1 } } as const;
      const scores = async (hybrid?: object, config = {}): Promise<number[]> =>
        hitsOf(await post('/v1/search', { ...search, hybrid }, config)).map(({ score }) => score);
      const ofServer = await scores({ ...server.hybrid });
      assert.deepEqual(await scores(undefined, server), ofServer);
      assert.deepEqual(
        await scores({ denseWeight: 0.2 }, server),
        await scores({ ...server.hybrid, denseWeight: 0.2 }),
      );
      assert.deepEqual(await scores({ fusion: 'weighted' }, server), await scores());
      assert.deepEqual(
        await scores({}),
        await scores({ fusion: 'weighted', denseWeight: 0.5, bm25Weight: 0.5, depth: 1_000 }),
      );
      assert.notDeepEqual(await scores({ ...rrf, rrfK: 1 }), await scores(rrf));
      assert.deepEqual(await scores({ ...rrf, rrfK: 10, denseWeight: 1, bm25Weight: 1 }), await scores(rrf));
      const bm25 = { k1: 3, b: 0 };
      const other = hitsOf(await post('/v1/search', { ...search, bm25 }));
      assert.notDeepEqual(
        other.map((hit) => hit.bm25?.score),
        hitsOf(await post('/v1/search', search)).map((hit) => hit.bm25?.score),
      );
    },
    { answerCache: new AnswerCache(1e6) },
  );
});

test('every dialect ranks by both lists if the server says so', { skip }, async () => {
  await served(both, async (post) => {
    const expected = hitsOf(await post('/v1/search', { ...search, k: 3 }));
    const body = { queries: [QUERY], topk: 3, return_scores: true };
    const { result } = (await post('/retrieve', body, { mode: 'hybrid' })).body;
    assert.deepEqual(
      result[0]!.map(({ document, score }) => [document.id, score]),
      expected.map(({ id, score }) => [id, score]),
    );
    const byRank = { mode: 'hybrid', hybrid: rrf } as const;
    const other = (await post('/retrieve', body, byRank)).body.result;
    assert.deepEqual(
      other[0]!.map(({ score }) => score),
      hitsOf(await post('/v1/search', { ...search, k: 3, hybrid: rrf })).map(({ score }) => score),
    );
  });
});

test('exclusion, deduplication, a lowest score and the fusion of queries work on the fused lists', {
  skip,
}, async () => {
  await served(both, async (post) => {
    const all = hitsOf(await post('/v1/search', { ...search, k: 60 }));
    const exclude = all.slice(0, 20).map(({ id }) => id);
    const rest = hitsOf(await post('/v1/search', { ...search, k: 270, exclude }));
    assert.ok(rest.every(({ id }) => !exclude.includes(id)));
    const denseRanks = rest.map(({ dense }) => dense!.rank).sort((a, b) => a - b);
    assert.deepEqual(
      denseRanks,
      Array.from({ length: 250 }, (_, i) => i + 1),
      'the lists have no excluded passages',
    );
    const few = hitsOf(await post('/v1/search', { ...search, k: 60, minScore: all[7]!.score }));
    assert.deepEqual(
      few,
      all.filter(({ score }) => score >= all[7]!.score),
    );
    const queries = [QUERY, 'Roebling'];
    const { hits } = (await post('/v1/search', { ...search, queries, fuse: 'rrf', deduplicate: 'title' })).body;
    assert.equal(hits!.length, 5);
    for (const hit of hits!) assert.ok(hit.dense !== undefined && hit.bm25 !== undefined);
  });
});

test('without a depth the lists have 1,000 passages or all, and a given depth bounds them', {
  skip,
}, async () => {
  await served(both, async (post) => {
    const depthOf = async (more: object): Promise<unknown> => {
      const { certificate } = (await post('/v1/search', { ...search, ...more })).body.results[0]!;
      return (certificate as { depth: number }).depth;
    };
    assert.equal(await depthOf({ k: 5 }), 270, 'all passages: the index has fewer than 1,000');
    assert.equal(await depthOf({ k: 5, hybrid: { depth: 150 } }), 150);
    const shallow = hitsOf(await post('/v1/search', { ...search, k: 50, hybrid: { depth: 3 } }));
    assert.ok(shallow.length >= 3 && shallow.length <= 6);
    const refused = await post('/v1/search', { ...search, hybrid: { depth: 300 } }, { maxK: 200 });
    assert.equal(refused.status, 422);
    assert.match(JSON.stringify(refused.body), /K_TOO_LARGE.*hybrid\.depth is 300; the limit of this server is 200/);
    const allowed = await post(
      '/v1/search',
      { ...search, hybrid: { depth: 300 } },
      { maxK: 200, hybrid: { depth: 300 } },
    );
    assert.equal(allowed.status, 200);
  });
});

test('wrong settings are refused, and the error names the field', { skip }, async () => {
  await served(both, async (post) => {
    for (const [hybrid, message] of [
      [{ fusion: 'sum' }, /hybrid\.fusion/],
      [{ rrfK: -1 }, /hybrid\.rrfK/],
      [{ denseWeight: 'much' }, /hybrid\.denseWeight/],
      [{ bm25Weight: 1e9 }, /hybrid\.bm25Weight/],
      [{ depth: 0 }, /hybrid\.depth/],
      [{ depth: 2.5 }, /hybrid\.depth/],
      [{ k: 60 }, /hybrid\.k/],
      [{ denseWeight: 0, bm25Weight: 0 }, /denseWeight and hybrid\.bm25Weight are 0/],
      [[], /hybrid/],
    ] as const) {
      const { status, body } = await post('/v1/search', { ...search, hybrid });
      assert.equal(status, 422, JSON.stringify(hybrid));
      assert.match(JSON.stringify(body), /INVALID_REQUEST/);
      assert.match(JSON.stringify(body), message);
    }
  });
  assert.throws(
    () => resolveServerConfig({ hybrid: { depth: 0 } }),
    trawlError('CONFIG_INVALID', /hybrid\.depth is 0/),
  );
});

test('an index with one list refuses hybrid and names the way to get the other', { skip }, async () => {
  for (const [index, message] of [
    [dense, /no inverted index.*needs vectors and an inverted index.*trawl optimize INDEX --bm25/],
    [words, /no vectors.*needs vectors and an inverted index.*trawl index CORPUS --model MODEL --bm25/],
  ] as const) {
    await served(index, async (post) => {
      const { status, body } = await post('/v1/search', search);
      assert.equal(status, 501);
      assert.match(JSON.stringify(body), message);
    });
    await assert.rejects(openRetriever(index, { modes: ['hybrid'] }), trawlError('NOT_SUPPORTED', message));
  }
});

test('an index with both lists names its modes, and is opened for all of them with hybrid', { skip }, async () => {
  for (const [options, modes] of [
    [{}, ['dense', 'bm25', 'hybrid']],
    [{ modes: ['hybrid'] }, ['hybrid', 'dense', 'bm25']],
    [{ modes: ['bm25', 'dense'] }, ['bm25', 'dense', 'hybrid']],
    [{ modes: ['dense'] }, ['dense']],
  ] as const) {
    const retriever = await openRetriever(both, { encoderPools, ...options });
    const app = buildApp(retriever);
    const { indexes } = (await app.inject({ url: '/v1/indexes' })).json();
    assert.deepEqual(indexes[0].modes, modes);
    await retriever.close();
  }
});

test('explain shows the part of each list, whose sum is the score, with the terms and the formula', {
  skip,
}, async () => {
  interface Explained extends ServedHit {
    readonly terms: readonly object[];
    readonly dense: { readonly rank: number; readonly score: number; readonly part: number } | null;
    readonly bm25: { readonly rank: number; readonly score: number; readonly part: number } | null;
  }
  interface Scale {
    readonly floor: number;
    readonly deviation: number;
  }
  await served(both, async (post) => {
    for (const hybrid of [
      { denseWeight: 0.3, bm25Weight: 0.9, depth: 30 },
      { ...rrf, rrfK: 20 },
    ]) {
      const plain = hitsOf(await post('/v1/search', { ...search, k: 20, hybrid }));
      const answer = await post('/v1/search', { ...search, k: 20, hybrid, explain: true });
      const hits = hitsOf(answer) as Explained[];
      const [result] = answer.body.results as unknown as [
        { fusion: { fusion: string; formula: string; lists: [{ dense: Scale; bm25: Scale }] } },
      ];
      const { formula, lists } = result.fusion;
      const [{ dense, bm25 }] = lists;
      for (const [i, hit] of hits.entries()) {
        const parts = [hit.dense?.part ?? 0, hit.bm25?.part ?? 0];
        assert.equal(Math.fround(parts[0]! + parts[1]!), hit.score);
        assert.deepEqual([hit.row, hit.score], [plain[i]!.row, plain[i]!.score]);
        assert.ok(!('part' in ((plain[i] as unknown as Explained).dense ?? {})), 'no parts without explain');
        if ('fusion' in hybrid) {
          if (hit.dense !== null) assert.equal(hit.dense.part, 1 / (20 + hit.dense.rank));
        } else {
          if (hit.dense !== null)
            assert.equal(hit.dense.part, 0.3 * ((hit.dense.score - dense.floor) / dense.deviation));
          if (hit.bm25 !== null) assert.equal(hit.bm25.part, 0.9 * ((hit.bm25.score - bm25.floor) / bm25.deviation));
        }
        assert.equal(hit.bm25 === null || hit.terms.length > 0, true);
      }
      assert.equal(formula.includes('rank'), 'fusion' in hybrid);
    }
    const dense = await post('/v1/search', { ...search, mode: 'dense', explain: true });
    assert.equal(dense.status, 422);
  });
});

test('the record has fusion, weights and depth of a hybrid search, whether they come from the server or the request', {
  skip,
}, async (t) => {
  const retriever = await openRetriever(both, { encoderPools });
  const recorded: RecordedSearch[] = [];
  const record = { record: (_request: object, each: RecordedSearch) => void recorded.push(each) };
  const app = buildApp(retriever, { mode: 'hybrid', hybrid: { denseWeight: 0.3 }, record });
  t.after(async () => {
    await app.close();
    await retriever.close();
  });
  await postTo(app, '/retrieve', { queries: [QUERY], topk: 3 });
  await postTo(app, '/v1/search', { ...search, hybrid: { ...rrf, depth: 7 } });
  assert.deepEqual(
    recorded.map(({ hybrid }) => hybrid),
    [
      { fusion: 'weighted', rrfK: 10, depth: 1_000, denseWeight: 0.3, bm25Weight: 0.5 },
      { fusion: 'rrf', rrfK: 10, depth: 7, denseWeight: 1, bm25Weight: 1 },
    ],
  );
});
