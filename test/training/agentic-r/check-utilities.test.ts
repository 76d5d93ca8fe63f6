import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { readCandidates } from '../../../training/agentic-r/candidates-file.ts';
import { checkUtilities, type OpenUtility, type UtilityCounts } from '../../../training/agentic-r/check-utilities.ts';
import { openKeyedLines } from '../../../training/agentic-r/keyed-lines.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import {
  globalLine,
  judgedFiles,
  localLine,
  type MadeFiles,
  type MadeRound,
  openFiles,
  twenty,
} from './judged-files.ts';

async function check(t: TestContext, files: MadeFiles): Promise<{ counts: UtilityCounts; open: OpenUtility[] }> {
  const open: OpenUtility[] = [];
  const counts = await checkUtilities(files.candidates, await openFiles(t, files), {
    onOpen: async (round) => void open.push(round),
  });
  return { counts, open };
}

const round: MadeRound = { id: 'a', utilities: twenty([1, 80]) };

test('complete utilities have no problem', async (t) => {
  const { counts, open } = await check(t, await judgedFiles(t, [round, { ...round, round: 2 }]));
  assert.deepEqual([counts.rounds, counts.usable, counts.examples], [2, 2, []]);
  assert.deepEqual(counts.local, { rounds: 2, repeated: 0, unknown: 0 });
  assert.deepEqual(open, []);
});

test('a round without candidates has nothing to judge, and is not to be judged again', async (t) => {
  const files = await judgedFiles(
    t,
    [
      { id: 'a', utilities: [] },
      { ...round, id: 'b' },
    ],
    { local: [], global: [] },
  );
  const { counts, open } = await check(t, files);
  assert.deepEqual([counts.problems['no-candidates'], counts.problems['no-local']], [1, 1]);
  assert.deepEqual(open, [{ id: 'b', round_index: 1, problem: 'no-local' }]);
});

test('each thing that makes utilities unusable is counted, described and to be judged again', async (t) => {
  const local = localLine(round) as { docid_score: Record<string, unknown> };
  const global = globalLine(round) as { docid_score: Record<string, unknown> };
  const changed = (line: { docid_score: object }, scores: object, more: object = {}): object => ({
    ...line,
    ...more,
    docid_score: { ...line.docid_score, ...scores },
  });
  const { 3: _, ...fewer } = local.docid_score;
  for (const [lines, problem, example] of [
    [{ local: [] }, 'no-local', undefined],
    [{ global: [] }, 'no-global', undefined],
    [{ local: [changed(local, { 4: 101 })] }, 'local-unusable', /passage 4 is 101; expected a whole number/],
    [{ local: [changed(local, { 4: 60.5 })] }, 'local-unusable', /passage 4 is 60\.5/],
    [{ local: [changed(local, { 4: '60' })] }, 'local-unusable', /passage 4 is a string/],
    [{ local: [changed(local, { 4: null })] }, 'local-unusable', /passage 4 is null/],
    // The first fault counts: the line is not refused as a whole for a later one.
    [{ local: [changed(local, { 4: null, 'hv-3': 4 })] }, 'local-unusable', /passage 4 is null/],
    [
      { local: [{ ...local, docid_score: fewer }] },
      'local-other-passages',
      /19 utilities for 20 candidates; passage 3 has none/,
    ],
    [{ local: [{ ...local, docid_score: undefined }] }, 'local-other-passages', /0 utilities for 20/],
    [{ local: [changed(local, { 77: 5 })] }, 'local-other-passages', /passage 77 is not a candidate of the round/],
    [{ global: [changed(global, { 4: 1 })] }, 'global-unusable', /em of passage 4 is missing; expected 0 or 1/],
    [{ global: [changed(global, { 4: null })] }, 'global-unusable', /em of passage 4 is missing/],
    [
      { global: [changed(global, { 4: { metric_score: { em: 0.5 } } })] },
      'global-unusable',
      /is 0\.5; expected 0 or 1/,
    ],
    [{ global: [changed(global, { 99: { metric_score: { em: 1 } } })] }, 'global-other-passages', /passage 99/],
    [
      { global: [changed(global, {}, { current_query: 'another' })] },
      'query-differs',
      /global\.jsonl:1: "current_query"/,
    ],
  ] as const) {
    const { counts, open } = await check(t, await judgedFiles(t, [round], lines));
    assert.equal(counts.problems[problem], 1, problem);
    assert.equal(counts.usable, 0);
    assert.deepEqual(open, [{ id: 'a', round_index: 1, problem }]);
    if (example === undefined) assert.deepEqual(counts.examples, []);
    else assert.match(counts.examples[0]!, example);
  }
});

test('rounds that step 3-2 omits are not to be judged again', async (t) => {
  const rounds = [
    { ...round, round: 5 },
    { id: 'b', utilities: twenty([1, 80]).slice(0, 7) },
  ];
  const { counts, open } = await check(t, await judgedFiles(t, rounds, { global: [] }));
  assert.equal(counts.problems['no-global'], 2);
  assert.equal(counts.noGlobalByDesign, 2);
  assert.deepEqual(open, []);
});

test('of lines for one round the last counts, and both repeated and unknown rounds are counted', async (t) => {
  const other = { ...round, utilities: twenty([1, 90]) };
  const files = await judgedFiles(t, [round], {
    local: [{ ...localLine(round), docid_score: { 0: 300 } }, localLine(other), localLine({ ...round, id: 'unknown' })],
  });
  const { counts } = await check(t, files);
  assert.deepEqual(counts.local, { rounds: 2, repeated: 1, unknown: 1 });
  assert.equal(counts.usable, 1);
});

test('a round that the candidates have twice counts once', async (t) => {
  const { counts } = await check(t, await judgedFiles(t, [round, round]));
  assert.deepEqual([counts.rounds, counts.repeatedRounds], [1, 1]);
});

test('lines of another shape are refused with their place', async (t) => {
  for (const [lines, message] of [
    [{ local: [{ round_index: 1, docid_score: {} }] }, /local\.jsonl:1: "id" is missing/],
    [{ local: [{ id: 'a', docid_score: {} }] }, /"round_index" is missing; expected a whole number from 1/],
    [{ local: [{ id: 'a', round_index: 0 }] }, /"round_index" is 0/],
    [{ local: [{ id: 'a', round_index: 1, docid_score: [] }] }, /"docid_score" is a list; expected an object/],
    [
      { local: [{ id: 'a', round_index: 1, docid_score: { 'hv-3': 4 } }] },
      /has the passage "hv-3"; expected row numbers/,
    ],
    [{ local: [{ id: 'a', round_index: 1, docid_score: { '-1': 4 } }] }, /has the passage "-1"/],
    [{ global: [{ id: 'a', round_index: 1 }] }, /global\.jsonl:1: "question" is missing/],
  ] as const) {
    const checked = (async () => check(t, await judgedFiles(t, [round], lines)))();
    await assert.rejects(checked, trawlError('CORPUS_BAD_LINE', message), String(message));
  }
  const folder = await tempFolder(t);
  const path = join(folder, 'local.jsonl');
  await writeFile(path, '{"id": "a", "round_index": 1, "docid_score": {"0": NaN}}');
  await assert.rejects(openKeyedLines(path), trawlError('CORPUS_BAD_LINE', /:1: not valid JSON \(it has NaN/));
  await writeFile(path, gzipSync('{}'));
  await assert.rejects(openKeyedLines(path), trawlError('CORPUS_BAD_LINE', /is gzip.*gunzip/));
  await assert.rejects(
    openKeyedLines(join(folder, 'absent.jsonl')),
    trawlError('CORPUS_NOT_FOUND', /absent\.jsonl: no such file/),
  );
});

test('candidates that are not row numbers are refused; the -1 of FAISS is left out', async (t) => {
  const path = join(await tempFolder(t), 'candidates.json');
  const write = (ids: unknown): Promise<void> => {
    const trajectory = [{ round_index: 1, reasoning_context: '', current_query: 'q', candidate_passage_ids: ids }];
    return writeFile(path, JSON.stringify([{ id: 'a', question: 'q', golden_answers: [], output: {}, trajectory }]));
  };
  const read = async (): Promise<readonly number[]> => {
    for await (const { trajectory } of readCandidates(path)) return trajectory[0]!.candidate_passage_ids;
    return [];
  };
  await write([4, -1, 0]);
  assert.deepEqual(await read(), [4, 0]);
  for (const ids of [['4'], [1.5], [-2], [null], 'x', undefined]) {
    await write(ids);
    await assert.rejects(read(), trawlError('CORPUS_BAD_LINE', /item 1, trajectory\[0\]: "candidate_passage_ids"/));
  }
});

test('lines are found by their keys, wherever they stand and however long they are', async (t) => {
  const path = join(await tempFolder(t), 'lines.jsonl');
  const text = fc.string({ unit: 'grapheme', maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(text), fc.constantFrom('\n', '\r\n', '\n\n'), async (ids, end) => {
      await writeFile(path, ids.map((id) => JSON.stringify({ id, round_index: 1, filler: id.repeat(9) })).join(end));
      const lines = await openKeyedLines(path);
      try {
        assert.equal(lines.size, ids.length);
        for (const id of ids) assert.equal((await lines.read(`${id}\u00001`))?.value['filler'], id.repeat(9));
        assert.equal(await lines.read('absent'), undefined);
      } finally {
        await lines.close();
      }
    }),
    { numRuns: 50 },
  );
});
