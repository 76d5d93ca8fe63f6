import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { AGENTIC_R_RULE, constructRows } from '../../training/agentic-r/construct-rows.ts';
import { PEERS } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { judgedFiles, localLine, type MadeRound, openFiles } from '../training/agentic-r/judged-files.ts';

interface Row {
  readonly query_id: string;
  readonly round_index: number;
  readonly passage_ids: readonly string[];
  readonly scores: readonly unknown[];
  readonly pool?: readonly string[];
}

/** Rounds with all that the rule tells apart: few and many correct candidates, ties, utilities around the threshold. */
function madeRounds(count: number): MadeRound[] {
  const random = seededRandom(17);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  return Array.from({ length: count }, (_, i) => {
    const correct = pick([0, 0.05, 0.2, 0.5]);
    const scores = pick([
      [0, 20, 59, 60, 61],
      [60, 80],
      [10, 80, 100],
      [0, 25, 50, 75, 100],
    ]);
    const utilities = Array.from({ length: 20 }, () => [random() < correct ? 1 : 0, pick(scores)] as const);
    return { id: `train_${Math.floor(i / 4)}`, round: (i % 4) + 1, firstRow: 20 * i, query: `é ${i}`, utilities };
  });
}

test('rows are those of the rule in Python, but for the draw, and both draws are from the same negatives', {
  skip: PEERS.missing(),
}, async (t) => {
  const rounds = madeRounds(2000);
  // One round in ten was not judged.
  const files = await judgedFiles(t, rounds, { local: rounds.filter((_, i) => i % 10 !== 7).map(localLine) });
  const out = join(files.candidates, '..', 'python.jsonl');
  const script = join(packageRoot, 'test', 'peers', 'agentic_r_rows.py');
  execFileSync(PEERS.python, [script, files.candidates, files.local, files.global, out, '1']);
  const theirs = (await readFile(out, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Row);
  const ours: Row[] = [];
  const counts = await constructRows(
    files.candidates,
    await openFiles(t, files),
    {
      ...AGENTIC_R_RULE,
      dataset: 'hotpotqa',
      seed: 0,
      excludeCorrect: false,
      excludeSiblings: false,
      fullHistory: false,
    },
    { write: async (line) => void ours.push(JSON.parse(line) as Row) },
  );
  for (const dropped of Object.values(counts.dropped)) assert.ok(dropped > 20, 'every reason occurs');
  assert.ok(ours.length > 500);
  assert.equal(ours.length, theirs.length);
  let equalDraws = 0;
  for (const [i, { pool, ...row }] of theirs.entries()) {
    const own = ours[i]!;
    const { passage_ids: ids, scores, ...rest } = own;
    const { passage_ids: theirIds, scores: theirScores, ...theirRest } = row;
    assert.deepEqual(rest, theirRest);
    assert.deepEqual([ids[0], scores[0]], [theirIds[0], theirScores[0]]);
    assert.equal(new Set(ids).size, AGENTIC_R_RULE.groupSize);
    assert.deepEqual(
      ids.slice(1),
      pool!.filter((id) => ids.slice(1).includes(id)),
      'a draw from their negatives, in their order',
    );
    if (pool!.length > AGENTIC_R_RULE.groupSize - 1) continue;
    equalDraws += 1;
    assert.deepEqual(own, row);
  }
  assert.ok(equalDraws > 20, 'rows without a choice are equal as a whole');
});
