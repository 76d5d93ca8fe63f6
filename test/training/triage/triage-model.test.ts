import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type TriageReport, triageModel } from '../../../training/triage/triage-model.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { PlantedEncoder, plantedIndex, type Scores } from './planted-triage.ts';

const QUESTIONS = 20;
const PASSAGES = 600;
/** Passages that only another index has. */
const MORE = 50;

/** Noise between 0 and 1 for each question and passage. */
function noise(seed: number): Scores {
  const random = seededRandom(seed);
  const values = Float64Array.from({ length: QUESTIONS * (PASSAGES + MORE) }, () => random());
  return (question, passage) => values[question * (PASSAGES + MORE) + passage]!;
}

/** The relevant passage is before all others. */
function finds(seed: number): Scores {
  const others = noise(seed);
  return (question, passage) => (question === passage ? 2 : others(question, passage));
}

/** For every second question, the last 60 passages of the first index are before the relevant one. */
function loses(seed: number): Scores {
  const others = finds(seed);
  return (question, passage) => others(question, passage) + (question % 2 === 0 && isLate(passage) ? 3 : 0);
}

/** The late passages are behind all others. */
const found = finds(1);
const present: Scores = (question, passage) => found(question, passage) - (isLate(passage) ? 5 : 0);

function isLate(passage: number): boolean {
  return passage >= PASSAGES - 60 && passage < PASSAGES;
}

function at(report: TriageReport, k: number): TriageReport['recall'][number] {
  return report.recall.find((each) => each.k === k)!;
}

function withoutTimes({ times: _, ...report }: TriageReport): Omit<TriageReport, 'times'> {
  return report;
}

/** The files in a folder that this process has open. */
function openFilesIn(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      // The descriptor with which the list itself was read.
      return [];
    }
  });
}

test('passages outside of the pool that are before the relevant one show in the estimate, not in the bound', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const report = await triageModel(
    planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), {
      sample: 24,
      gate: { k: 5, minRecall: null, maxDrop: 0.1 },
    }),
  );
  const { tried, present: now, change } = at(report, 5);
  assert.equal(tried.bound.value, 1, 'no passage of the pool is before a relevant one');
  // The truth is 0.5: 60 passages are before the relevant one of every second question. The sample has two or three of them.
  assert.ok(Math.abs(tried.estimate!.value - 0.5) < 0.02, `${tried.estimate!.value}`);
  assert.ok(tried.counts! <= 0.55);
  assert.equal(now.whole.value, 1);
  assert.ok(Math.abs(change!.value + 0.5) < 0.02);
  assert.ok(tried.estimate!.low! < 0.5 && tried.estimate!.high! > 0.5);
  // Every question has its relevant passage in the pool: draws of equal values are no interval.
  assert.deepEqual([tried.bound.low, tried.bound.high], [null, null]);
  assert.deepEqual([report.threshold, report.verdict], [0.9, 'refused']);
  assert.ok(report.passages.pool < PASSAGES / 2 && report.passages.sampled === 24);
});

test('without a sample there is only the bound, and a model that it cannot refuse passes', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const report = await triageModel(
    planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), {
      sample: 0,
      gate: { k: 5, minRecall: 0.9, maxDrop: null },
    }),
  );
  const { tried, present: now, change } = at(report, 5);
  assert.deepEqual([tried.bound.value, tried.estimate, tried.counts, change, now.asNew], [1, null, null, null, null]);
  assert.equal(report.verdict, 'passed');
});

test('a sample of all other passages gives the recall of the whole index, by every estimate', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const report = await triageModel(
    planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), {
      sample: PASSAGES,
      cutoffs: [1, 5, 61],
      gate: { k: 61, minRecall: null, maxDrop: null },
    }),
  );
  assert.equal(report.passages.pool, PASSAGES);
  for (const [k, truth] of [
    [1, 0.5],
    [5, 0.5],
    [61, 1],
  ] as const) {
    const { tried, present: now } = at(report, k);
    assert.deepEqual([tried.bound.value, tried.estimate!.value, tried.counts], [truth, truth, truth], `@${k}`);
    assert.deepEqual(now.asNew, { bound: 1, estimate: 1, counts: 1 });
  }
  assert.equal(report.verdict, 'none');
});

test('a damaged model is refused for certain: the pool alone is enough', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const report = await triageModel(
    planted.options(new PlantedEncoder('damaged', QUESTIONS, noise(3)), {
      gate: { k: 5, minRecall: null, maxDrop: 0.02 },
    }),
  );
  assert.ok(at(report, 5).tried.bound.value < 0.3);
  assert.equal(report.verdict, 'refused-for-certain');
});

test('the present encoder is tried on a pool without its own lists', async (t) => {
  // It has many passages before the relevant ones, and all of them are in its own lists.
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: loses(2) });
  const report = await triageModel(
    planted.options(new PlantedEncoder('same', QUESTIONS, loses(2)), { depth: 70, sample: 30 }),
  );
  const { tried, present: now } = at(report, 5);
  assert.deepEqual([now.whole.value, tried.bound.value], [0.5, 0.5]);
  assert.equal(now.asNew!.bound > 0.5, true, 'fewer than five of the sample are before some relevant passage');
  assert.ok(Math.abs(now.asNew!.estimate - 0.5) < 0.05, `${now.asNew!.estimate}`);
});

test('equal seeds give equal reports and another seed another sample', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const run = (seed: number): Promise<TriageReport> =>
    triageModel(planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), { seed }));
  const [first, again, other] = [await run(1), await run(1), await run(2)];
  assert.deepEqual(withoutTimes(again), withoutTimes(first));
  assert.notDeepEqual(other.recall, first.recall);
});

test('a stopped run resumes at its checkpoint, with the report of an undisturbed one', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const sample = { sample: PASSAGES, checkpointMs: 0 };
  const expected = await triageModel(planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), sample));
  assert.ok(!existsSync(join(planted.folder, 'work')), 'the vectors are removed');
  const stop = new AbortController();
  await assert.rejects(
    triageModel(
      planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), {
        ...sample,
        signal: stop.signal,
        onProgress: ({ step, done }) => {
          if (step === 'embedding the pool' && done > 0) stop.abort();
        },
      }),
    ),
    (error: { code: string; details: Record<string, unknown> }) =>
      error.code === 'CANCELLED' && error.details['resumable'] === true && error.details['passages'] === 256,
  );
  const next = new PlantedEncoder('loses', QUESTIONS, loses(2));
  const resumed = await triageModel(planted.options(next, sample));
  assert.deepEqual(withoutTimes(resumed), withoutTimes(expected));
  assert.equal(resumed.times.resumed, 256);
  assert.equal(next.texts.filter((text) => String(text).startsWith('p')).length, PASSAGES - 256);
});

test('a run that is stopped while its checkpoint cannot be written closes its files and says where the next one resumes', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const work = join(planted.folder, 'work');
  const stop = new AbortController();
  await assert.rejects(
    triageModel(
      planted.options(new PlantedEncoder('loses', QUESTIONS, loses(2)), {
        sample: PASSAGES,
        checkpointMs: 60_000,
        signal: stop.signal,
        onProgress: ({ step, done }) => {
          if (step !== 'embedding the pool' || done === 0 || stop.signal.aborted) return;
          // The checkpoint cannot take the place of a folder that has a file.
          mkdirSync(join(work, readdirSync(work)[0]!, 'progress.json', 'in-the-way'), { recursive: true });
          stop.abort();
        },
      }),
    ),
    (error: { code: string; message: string; details: Record<string, unknown> }) =>
      error.code === 'CANCELLED' &&
      error.message.startsWith('Stopped after 0 of ') &&
      error.details['resumable'] === true &&
      error.details['passages'] === 0,
  );
  if (process.platform === 'linux') assert.deepEqual(openFilesIn(work), []);
});

test('vectors are kept on request, and are used by no other model and no other pool', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const embedded = async (name: string, more: object = {}): Promise<number> => {
    const encoder = new PlantedEncoder(name, QUESTIONS, finds(4));
    const report = await triageModel(planted.options(encoder, { keepVectors: true, ...more }));
    assert.equal(
      encoder.texts.filter((text) => String(text).startsWith('p')).length,
      report.passages.pool - report.times.resumed,
    );
    return report.passages.pool - report.times.resumed;
  };
  assert.ok((await embedded('one')) > 0);
  assert.equal(await embedded('one', { cutoffs: [2, 5] }), 0);
  assert.ok((await embedded('two')) > 0);
  assert.ok((await embedded('one', { seed: 8 })) > 0);
  assert.equal(readdirSync(join(planted.folder, 'work')).length, 3);
});

test('two runs cannot embed the same pool at once', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  let second: Promise<unknown> | undefined;
  const encoder = (before?: () => Promise<void>): PlantedEncoder =>
    new PlantedEncoder('one', QUESTIONS, finds(4), before === undefined ? {} : { before });
  await triageModel(
    planted.options(
      encoder(async () => {
        second ??= assert.rejects(
          triageModel(planted.options(encoder())),
          trawlError('OUTPUT_EXISTS', /Another run embeds the same passages .* Wait until it has ended, or stop it/),
        );
        await second;
      }),
    ),
  );
  assert.ok(second !== undefined);
});

test('questions without judgements and relevant passages outside of the index are counted', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const encoder = new PlantedEncoder('good', QUESTIONS, finds(4));
  const questions = [
    { id: 'a', question: 'q0', goldIds: ['p0', 'elsewhere'] },
    { id: 'b', question: 'q1' },
    { id: 'c', question: 'q2', goldIds: ['p2'] },
  ];
  const report = await triageModel(planted.options(encoder, { questions }));
  assert.deepEqual(report.questions, { read: 3, judged: 2, unjudged: 1, relevant: 3, missing: 1 });
  assert.equal(at(report, 5).tried.bound.value, 0.75);
  assert.equal(at(report, 5).present.whole.value, 0.75);
  const judgements = new Map([
    [
      'b',
      new Map([
        ['p1', 2],
        ['p5', 0],
      ]),
    ],
  ]);
  const judged = await triageModel(planted.options(encoder, { questions, judgements }));
  assert.deepEqual(judged.questions, { read: 3, judged: 1, unjudged: 2, relevant: 1, missing: 0 });
  await assert.rejects(
    triageModel(planted.options(encoder, { questions: [{ id: 'b', question: 'q1' }] })),
    trawlError('CORPUS_EMPTY', /None of the 1 questions has a relevant passage/),
  );
});

test('the lists of another generation and of records join the pool by id', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  // It has the last passages before the relevant ones, and passages that the present index does not have.
  const other = await plantedIndex(t, {
    questions: QUESTIONS,
    passages: PASSAGES + MORE,
    scores: loses(2),
    name: 'other',
  });
  const records = join(planted.folder, 'calls.jsonl');
  writeFileSync(
    records,
    recordLine('q4', { rows: [], scores: [], ids: [] }) +
      recordLine('q5', { k: 3, rows: [9, 9, 9], scores: [3, 2, 1], ids: ['p400', 'gone', 'p401'] }) +
      recordLine('q5', { generation: planted.retriever.info.generation, rows: [410], scores: [1], ids: ['x'] }) +
      recordLine('q6', { generation: other.retriever.info.generation, rows: [420], scores: [1], ids: ['p420'] }) +
      recordLine('a question of training', { ids: ['p402', 'p403'] }),
  );
  const encoder = new PlantedEncoder('loses', QUESTIONS, loses(2));
  const report = await triageModel(
    planted.options(encoder, { others: [other.retriever], records: [records], depth: 70, sample: 20 }),
  );
  const passages = Object.fromEntries(report.passages.sources.map(({ name, passages: count }) => [name, count]));
  assert.equal(passages['records of other generations'], 2);
  assert.equal(passages['records of this generation'], 1);
  assert.equal(passages['records of other encoders and BM25'], 1);
  assert.ok(passages['other, dense']! >= 60);
  assert.deepEqual(report.records, { read: 5, ofOtherQuestions: 1 });
  assert.ok(report.passages.unknownIds >= 1);
  // The other lists have what is before the relevant passages: now the pool alone says it.
  assert.equal(at(report, 5).tried.bound.value, 0.5);
});

test('what another state of the same index finds is no help for the error of the present encoder', async (t) => {
  // It has many passages before the relevant ones, and all of them are in its own lists.
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: loses(2) });
  const earlier = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES + 1, scores: loses(2) });
  assert.notEqual(earlier.retriever.info.generation, planted.retriever.info.generation);
  const records = join(planted.folder, 'calls.jsonl');
  const late = Array.from({ length: 60 }, (_, i) => `p${PASSAGES - 60 + i}`);
  const line = { k: 60, rows: late.map((_, i) => i), scores: late.map((_, i) => 60 - i), ids: late };
  writeFileSync(records, recordLine('q4', { ...line, generation: 'f'.repeat(64) }));
  const asNew = async (more: object): Promise<number> => {
    const tried = new PlantedEncoder('same', QUESTIONS, loses(2));
    const report = await triageModel(planted.options(tried, { depth: 70, sample: 30, ...more }));
    return at(report, 5).present.asNew!.bound;
  };
  const alone = await asNew({});
  assert.ok(alone > 0.5);
  assert.equal(await asNew({ others: [earlier.retriever] }), alone);
  assert.equal(await asNew({ records: [records] }), alone);
  // Another encoder does help: its lists would have been there for a new one.
  const other = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: loses(2), name: 'other' });
  assert.equal(await asNew({ others: [other.retriever] }), 0.5);
});

test('judgements with the ids of another corpus are refused before anything is embedded', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const encoder = new PlantedEncoder('good', QUESTIONS, finds(4));
  const questions = [
    { id: 'a', question: 'q0', goldIds: ['doc-0', 'doc-1'] },
    { id: 'b', question: 'q1', goldIds: ['doc-2'] },
  ];
  await assert.rejects(
    triageModel(planted.options(encoder, { questions, gate: { k: 5, minRecall: null, maxDrop: 0 } })),
    trawlError('CORPUS_EMPTY', /None of the 3 relevant passages of 2 questions is in the index present.*"doc-0"/),
  );
  assert.equal(encoder.batches.length, 0);
});

test('a run that fails after the pool is embedded keeps its vectors, and the report comes before they are removed', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const work = join(planted.folder, 'work');
  const failing = new Proxy(planted.retriever, {
    get: (target, name) => {
      if (name === 'nearest') return () => Promise.reject(new Error('on purpose'));
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const encoder = (): PlantedEncoder => new PlantedEncoder('one', QUESTIONS, finds(4));
  await assert.rejects(triageModel(planted.options(encoder(), { retriever: failing })), /on purpose/);
  let atReport: boolean | undefined;
  const report = await triageModel(
    planted.options(encoder(), {
      onReport: () => {
        atReport = existsSync(work);
      },
    }),
  );
  assert.equal(report.times.resumed, report.passages.pool);
  assert.equal(atReport, true);
  assert.ok(!existsSync(work));
});

test('a passage that the model cannot embed is named by its row', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const encoder = new PlantedEncoder('fails', QUESTIONS, finds(4), { failing: (text) => text === 'p3' });
  await assert.rejects(
    triageModel(planted.options(encoder)),
    trawlError('ENCODING_FAILED', /The passage of row 3 could not be embedded/),
  );
});

test('a work folder that cannot be made is refused', async (t) => {
  const planted = await plantedIndex(t, { questions: QUESTIONS, passages: PASSAGES, scores: present });
  const file = join(planted.folder, 'file');
  writeFileSync(file, '');
  const encoder = new PlantedEncoder('good', QUESTIONS, finds(4));
  await assert.rejects(
    triageModel(planted.options(encoder, { work: join(file, 'work') })),
    trawlError('OUTPUT_NOT_WRITABLE'),
  );
  assert.ok(!existsSync(join(planted.folder, 'work')));
});
