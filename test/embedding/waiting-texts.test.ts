import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { ChunkSizer } from '../../src/embedding/chunk-size.ts';
import { type Chunk, EncodeJob } from '../../src/embedding/encode-job.ts';
import { UNCOUNTED } from '../../src/embedding/text-lanes.ts';
import { MAX_GROUPED_TOKENS } from '../../src/embedding/token-batch.ts';
import { WaitingTexts } from '../../src/embedding/waiting-texts.ts';

/** A millisecond for 10 characters, so that a chunk of 5 ms has one or two short texts and one of 20 ms some more. */
function measuredSizer(): ChunkSizer {
  const sizer = new ChunkSizer({ query: 512, passage: 512 });
  sizer.observe(1000, 100);
  return sizer;
}

function queue(sizer = measuredSizer()) {
  const waiting = new WaitingTexts(sizer);
  const add = (texts: readonly string[], signal?: AbortSignal): EncodeJob => {
    const job = new EncodeJob(texts, { kind: 'query', ...(signal === undefined ? {} : { signal }) }, 1, sizer);
    job.result.catch(() => {});
    if (job.hasWork) waiting.add(job);
    return job;
  };
  return { waiting, add };
}

const textsOf = ({ pieces }: Chunk) => pieces.flatMap(({ inputs }) => inputs as string[]);
/** As a worker would: a text has as many tokens as characters. */
const count = (waiting: WaitingTexts, { uncounted }: Chunk) => {
  waiting.counted(
    uncounted,
    Int32Array.from(uncounted.flatMap(({ inputs }) => inputs as string[]).map(({ length }) => length)),
  );
};

test('every text is handed out once, whatever is counted, cancelled and added in between', () => {
  const step = fc.oneof(
    fc.record({ add: fc.array(fc.string({ maxLength: 600 }), { minLength: 1, maxLength: 40 }) }),
    fc.record({ gather: fc.constant(true), counts: fc.boolean() }),
    fc.record({ count: fc.constant(true) }),
    fc.record({ abort: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { waiting, add } = queue();
      const jobs = new Map<EncodeJob, { abort: AbortController; seen: Set<number>; texts: number }>();
      const toCount: Chunk[] = [];
      let dropped = 0;
      const taken = (chunk: Chunk) => {
        for (const { job, places } of chunk.pieces) {
          const { seen, abort } = jobs.get(job)!;
          assert.equal(abort.signal.aborted, false, 'nobody waits for it');
          for (const place of places) {
            assert.equal(seen.has(place), false, 'handed out twice');
            seen.add(place);
          }
        }
      };
      for (const each of steps) {
        if ('add' in each) {
          const abort = new AbortController();
          jobs.set(add(each.add, abort.signal), { abort, seen: new Set(), texts: each.add.length });
        } else if ('gather' in each) {
          const chunk = waiting.gather(2, each.counts);
          if (chunk === null) continue;
          taken(chunk);
          toCount.push(chunk);
        } else if ('count' in each) {
          const chunk = toCount.shift();
          if (chunk !== undefined) count(waiting, chunk);
        } else {
          const job = [...jobs.values()][each.abort % Math.max(1, jobs.size)];
          if (job === undefined || job.abort.signal.aborted) continue;
          dropped += job.texts - job.seen.size;
          job.abort.abort();
        }
        const left = [...jobs.values()].filter(({ abort }) => !abort.signal.aborted);
        assert.equal(
          waiting.texts,
          left.reduce((sum, { texts, seen }) => sum + texts - seen.size, 0),
        );
      }
      for (let chunk = waiting.gather(2, true); chunk !== null; chunk = waiting.gather(2, true)) taken(chunk);
      for (const { abort, seen, texts } of jobs.values()) {
        if (!abort.signal.aborted) assert.equal(seen.size, texts);
      }
      assert.deepEqual([waiting.texts, waiting.droppedTexts], [0, dropped]);
      assert.ok(Math.abs(waiting.weight) < 1e-6);
    }),
  );
});

test('texts whose tokens are counted go with those of the same number, of all calls', () => {
  const { waiting, add } = queue();
  const lengths = [3, 9, 3, 9, 3, 9, 3, 9, 3, 9, 3, 9];
  for (const length of lengths) add(['x'.repeat(length), 'x'.repeat(length)]);
  count(waiting, waiting.gather(2, true)!);
  let counted = 0;
  for (let chunk = waiting.gather(2, true); chunk !== null; chunk = waiting.gather(2, true)) {
    const found = new Set(textsOf(chunk).map(({ length }) => length));
    assert.equal(found.size, 1, [...found].join());
    if (textsOf(chunk).length > 2) counted++;
  }
  assert.ok(counted > 0, 'chunks of several calls');
});

test('long texts and texts of many tokens stay as they came', () => {
  const { waiting, add } = queue();
  add(['one', 'two', 'x'.repeat(1000), 'three']);
  const first = waiting.gather(1, true)!;
  assert.deepEqual(
    first.uncounted.flatMap(({ inputs }) => inputs),
    ['three'],
  );
  const { waiting: other, add: addOther } = queue();
  const job = addOther(['one', 'two', 'x'.repeat(MAX_GROUPED_TOKENS + 1), 'x'.repeat(MAX_GROUPED_TOKENS)]);
  count(other, other.gather(1, true)!);
  assert.deepEqual([...job.lanes()], [MAX_GROUPED_TOKENS, UNCOUNTED]);
});

test('tokens are counted once, and not at all where they do not matter', () => {
  const { waiting, add } = queue();
  add(Array.from({ length: 600 }, (_, i) => `text ${i}`));
  const asked = [
    waiting.gather(2, true)!,
    waiting.gather(2, true)!,
    waiting.gather(2, true)!,
    waiting.gather(2, true)!,
  ];
  const numbers = asked.map(({ uncounted }) => uncounted.reduce((sum, { places }) => sum + places.length, 0));
  assert.deepEqual(numbers.slice(0, 2), [256, 256]);
  assert.equal(numbers[3], 0);
  const all = asked.flatMap(({ uncounted }) => uncounted.flatMap(({ places }) => places));
  assert.equal(new Set(all).size, all.length);
  const { waiting: other, add: addOther } = queue();
  addOther(['a', 'b', 'c', 'd', 'e', 'f']);
  assert.deepEqual(other.gather(2, false)!.uncounted, []);
});

test('a call that has had nothing is served within two chunks, however much waits, and big calls go on', () => {
  const { waiting, add } = queue();
  for (let i = 0; i < 4; i++) add(Array.from({ length: 500 }, (_, place) => 'x'.repeat(1 + ((place + i) % 30))));
  for (let i = 0; i < 9; i++) count(waiting, waiting.gather(2, true)!);
  const big = waiting.texts;
  for (let i = 0; i < 20; i++) {
    add(['a lone query of its own']);
    const both = [waiting.gather(2, true)!, waiting.gather(2, true)!];
    const own = both.filter((chunk) => textsOf(chunk).includes('a lone query of its own'));
    assert.equal(own.length, 1, `at ${i}`);
    assert.ok(own[0]!.weight <= 100, 'and does not wait for company that fills the chunk');
  }
  assert.ok(waiting.texts <= big - 20);
});

test('whatever keeps coming, a call has something within two chunks for each before it that has had nothing', () => {
  const calls = fc.array(fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 12 }), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(calls, { minLength: 1, maxLength: 40 }), (inflow) => {
      const { waiting, add } = queue();
      const withNothing = new Map<EncodeJob, number>();
      let chunks = 0;
      const serve = (): boolean => {
        const chunk = waiting.gather(2, true);
        if (chunk === null) return false;
        chunks++;
        count(waiting, chunk);
        for (const { job } of chunk.pieces) withNothing.delete(job);
        for (const last of withNothing.values()) assert.ok(chunks < last);
        return true;
      };
      for (const jobs of inflow) {
        for (const lengths of jobs) {
          const ahead = withNothing.size;
          withNothing.set(add(lengths.map((length) => 'x'.repeat(length))), chunks + 2 * (ahead + 1));
        }
        serve();
      }
      while (serve());
      assert.deepEqual([withNothing.size, waiting.texts], [0, 0]);
    }),
  );
});

test('of a lane each call gets its share before one gets a second', () => {
  const { waiting, add } = queue();
  for (let i = 0; i < 3; i++) add(new Array(50).fill(`call ${i}`));
  count(waiting, waiting.gather(1, true)!);
  const chunk = waiting.gather(1, true)!;
  const shares = chunk.pieces.map(({ places }) => places.length);
  assert.equal(new Set(chunk.pieces.map(({ job }) => job)).size, 3);
  assert.ok(Math.max(...shares) - Math.min(...shares) <= 1, shares.join());
});

test('calls that were cancelled are not kept in memory, whatever waits before them', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { waiting, add } = queue();
  for (let i = 0; i < 3; i++) add(['one', 'two', 'three']);
  const cancelled = Array.from({ length: 5 }, () => {
    const abort = new AbortController();
    const job = new WeakRef(add(['one', 'two'], abort.signal));
    abort.abort();
    return job;
  });
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.equal(waiting.texts, 9);
  assert.equal(cancelled.filter((job) => job.deref() !== undefined).length, 0);
});
