import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readQuestions } from '../../evaluation/read-questions.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { withoutMiniLm } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const DATA = 'hotpot_val500_pooled';
const RANKS = 10;
/** Scores may differ by this, so passages whose scores differ by less may be swapped. */
const NEAR = 1e-5;

interface Ranked {
  readonly title: string;
  readonly score: number;
}

const miniLm = importedMiniLm();

/** Reads `example_id,rank,title,score`; titles with a comma or a quotation mark are quoted. */
function readReference(): Map<string, Ranked[]> {
  const lines = readFileSync(sharedData(`${DATA}/reference/dense_top50_pooled.csv`), 'utf8')
    .trim()
    .split(/\r?\n/);
  const reference = new Map<string, Ranked[]>();
  for (const line of lines.slice(1)) {
    const fields = /^([^,]+),(\d+),(?:"((?:[^"]|"")*)"|([^",]*)),([^,]+)$/.exec(line);
    assert.ok(fields !== null, line);
    const [, id, rank, quoted, plain, score] = fields as unknown as [string, string, string, string?, string?, string?];
    const ranked = reference.get(id) ?? [];
    assert.equal(Number(rank), ranked.length + 1);
    ranked.push({ title: quoted?.replaceAll('""', '"') ?? plain!, score: Number(score) });
    reference.set(id, ranked);
  }
  return reference;
}

test("HotpotQA's titles and scores equal those of a Python pipeline with the same model", {
  skip: withoutMiniLm() || withoutSharedData(DATA),
}, async (t) => {
  const out = join(await tempFolder(t), 'hotpot');
  const model = await miniLm();
  const encoder = await openEncoder(model);
  const engine = loadKernel();
  try {
    await buildIndex({
      corpus: [sharedData(`${DATA}/corpus.jsonl`)],
      corpusOptions: {},
      encoder,
      kernel: engine.ok ? engine.kernel : undefined,
      out,
      overwrite: false,
      // The reference embedded the texts without their titles.
      passageTemplate: '{text}',
      uniqueIds: true,
      onProgress: () => undefined,
    });
  } finally {
    await encoder.close();
  }
  const retriever = await openRetriever(out, { model });
  t.after(() => retriever.close());
  const reference = readReference();
  const questions = await readQuestions(sharedData(`${DATA}/queries.jsonl`));
  assert.equal(questions.length, 500);
  // Twice the compared ranks, to find both passages of a tie at the last rank.
  const { outcomes } = await retriever.retrieve({ queries: questions.map(({ question }) => question), k: 2 * RANKS });
  let [same, ties, furthest] = [0, 0, 0];
  for (const [i, outcome] of outcomes.entries()) {
    const { id } = questions[i]!;
    assert.ok(outcome.ok, id);
    const hits = outcome.hits.map(({ score, document }): Ranked => {
      const { title } = JSON.parse(document) as { title: string };
      return { title, score };
    });
    for (const [rank, expected] of reference.get(id)!.slice(0, RANKS).entries()) {
      const found = hits[rank]!;
      const difference = Math.abs(found.score - expected.score);
      assert.ok(difference <= NEAR, `${id}, rank ${rank + 1}: ${found.score}, not ${expected.score}`);
      furthest = Math.max(furthest, difference);
      if (found.title === expected.title) same++;
      else if (hits.some(({ title, score }) => title === expected.title && Math.abs(score - found.score) <= NEAR))
        ties++;
      else assert.fail(`${id}, rank ${rank + 1}: ${found.title}, not ${expected.title}, and they are not tied`);
    }
  }
  const ranks = questions.length * RANKS;
  t.diagnostic(`${same} of ${ranks} titles are equal, ${ties} others are ties; scores differ by up to ${furthest}`);
  assert.equal(same + ties, ranks);
  assert.ok(same / ranks >= 0.998);
});
