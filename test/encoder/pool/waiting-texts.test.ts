import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_GROUPED_TOKENS } from '../../../src/encoder/inference/length-groups.ts';
import { ChunkSizer } from '../../../src/encoder/pool/chunk-size.ts';
import { type Chunk, EncodeCall, PoolUser, UNGROUPED } from '../../../src/encoder/pool/encode-call.ts';
import { WaitingTexts } from '../../../src/encoder/pool/waiting-texts.ts';
import { collectGarbage } from '../../helpers/collect-garbage.ts';

/** Has measured 1 ms per 10 characters: a chunk of 5 ms holds one or two short texts, a chunk of 20 ms a few more. */
function measuredSizer(): ChunkSizer {
  const sizer = new ChunkSizer();
  sizer.observe(1000, 100);
  return sizer;
}

const TOKENIZE = { prefix: '', maxTokens: 512, truncate: 'tail' } as const;

function queue(sizer = measuredSizer()) {
  const waiting = new WaitingTexts(sizer);
  const user = new PoolUser();
  const add = (texts: readonly string[], signal?: AbortSignal, by = user): EncodeCall => {
    const call = new EncodeCall(texts, { user: by, tokenize: TOKENIZE, signal }, 1, sizer);
    call.result.catch(() => {});
    if (call.hasWork) waiting.add(call);
    return call;
  };
  return { waiting, add, user };
}

const textsOf = ({ slices }: Chunk) => slices.flatMap(({ inputs }) => inputs as string[]);
/** Counts tokens as a worker would; a text has as many tokens as characters. */
const count = (waiting: WaitingTexts, { uncounted }: Chunk) => {
  waiting.setTokens(
    uncounted,
    Int32Array.from(uncounted.flatMap(({ inputs }) => inputs as string[]).map(({ length }) => length)),
  );
};

test('every text is handed out once, whatever calls are counted, cancelled and added in between', () => {
  const step = fc.oneof(
    fc.record({ add: fc.array(fc.string({ maxLength: 600 }), { minLength: 1, maxLength: 40 }) }),
    fc.record({ next: fc.constant(true), countsTokens: fc.boolean() }),
    fc.record({ count: fc.constant(true) }),
    fc.record({ abort: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { waiting, add, user } = queue();
      const calls = new Map<EncodeCall, { abort: AbortController; seen: Set<number>; texts: number }>();
      const toCount: Chunk[] = [];
      let dropped = 0;
      const taken = (chunk: Chunk) => {
        for (const { call, indexes } of chunk.slices) {
          const { seen, abort } = calls.get(call)!;
          assert.equal(abort.signal.aborted, false, 'the call was cancelled');
          for (const index of indexes) {
            assert.equal(seen.has(index), false, 'handed out twice');
            seen.add(index);
          }
        }
      };
      for (const each of steps) {
        if ('add' in each) {
          const abort = new AbortController();
          calls.set(add(each.add, abort.signal), { abort, seen: new Set(), texts: each.add.length });
        } else if ('next' in each) {
          const chunk = waiting.nextChunk(2, each.countsTokens);
          if (chunk === null) continue;
          taken(chunk);
          toCount.push(chunk);
        } else if ('count' in each) {
          const chunk = toCount.shift();
          if (chunk !== undefined) count(waiting, chunk);
        } else {
          const call = [...calls.values()][each.abort % Math.max(1, calls.size)];
          if (call === undefined || call.abort.signal.aborted) continue;
          dropped += call.texts - call.seen.size;
          call.abort.abort();
        }
        const left = [...calls.values()].filter(({ abort }) => !abort.signal.aborted);
        assert.equal(
          user.waitingTexts,
          left.reduce((sum, { texts, seen }) => sum + texts - seen.size, 0),
        );
      }
      for (let chunk = waiting.nextChunk(2, true); chunk !== null; chunk = waiting.nextChunk(2, true)) taken(chunk);
      for (const { abort, seen, texts } of calls.values()) {
        if (!abort.signal.aborted) assert.equal(seen.size, texts);
      }
      assert.deepEqual([user.waitingTexts, user.droppedTexts], [0, dropped]);
      assert.ok(Math.abs(waiting.weight) < 1e-6);
    }),
  );
});

test('counted texts share chunks with texts of the same token count from all calls', () => {
  const { waiting, add } = queue();
  const lengths = [3, 9, 3, 9, 3, 9, 3, 9, 3, 9, 3, 9];
  for (const length of lengths) add(['x'.repeat(length), 'x'.repeat(length)]);
  count(waiting, waiting.nextChunk(2, true)!);
  let shared = 0;
  for (let chunk = waiting.nextChunk(2, true); chunk !== null; chunk = waiting.nextChunk(2, true)) {
    const found = new Set(textsOf(chunk).map(({ length }) => length));
    assert.equal(found.size, 1, [...found].join());
    if (textsOf(chunk).length > 2) shared++;
  }
  assert.ok(shared > 0, 'no chunk has texts of several calls');
});

test('long texts are not counted, and texts of more than MAX_GROUPED_TOKENS tokens get no length bucket', () => {
  const { waiting, add } = queue();
  add(['one', 'two', 'x'.repeat(1000), 'three']);
  const first = waiting.nextChunk(1, true)!;
  assert.deepEqual(
    first.uncounted.flatMap(({ inputs }) => inputs),
    ['three'],
  );
  const { waiting: other, add: addOther } = queue();
  const call = addOther(['one', 'two', 'x'.repeat(MAX_GROUPED_TOKENS + 1), 'x'.repeat(MAX_GROUPED_TOKENS)]);
  count(other, other.nextChunk(1, true)!);
  assert.deepEqual([...call.buckets()], [MAX_GROUPED_TOKENS, UNGROUPED]);
});

test('the tokens of a text are counted once, or never if texts cannot run in groups', () => {
  const { waiting, add } = queue();
  add(Array.from({ length: 600 }, (_, i) => `text ${i}`));
  const chunks = Array.from({ length: 4 }, () => waiting.nextChunk(2, true)!);
  const numbers = chunks.map(({ uncounted }) => uncounted.reduce((sum, { indexes }) => sum + indexes.length, 0));
  assert.deepEqual(numbers.slice(0, 2), [256, 256]);
  assert.equal(numbers[3], 0);
  const all = chunks.flatMap(({ uncounted }) => uncounted.flatMap(({ indexes }) => indexes));
  assert.equal(new Set(all).size, all.length);
  const { waiting: other, add: addOther } = queue();
  addOther(['a', 'b', 'c', 'd', 'e', 'f']);
  assert.deepEqual(other.nextChunk(2, false)!.uncounted, []);
});

test('a new call starts within two chunks however many texts wait, and large calls still advance', () => {
  const { waiting, add, user } = queue();
  for (let i = 0; i < 4; i++) add(Array.from({ length: 500 }, (_, text) => 'x'.repeat(1 + ((text + i) % 30))));
  for (let i = 0; i < 9; i++) count(waiting, waiting.nextChunk(2, true)!);
  const before = user.waitingTexts;
  for (let i = 0; i < 20; i++) {
    add(['a lone query of its own']);
    const both = [waiting.nextChunk(2, true)!, waiting.nextChunk(2, true)!];
    const own = both.filter((chunk) => textsOf(chunk).includes('a lone query of its own'));
    assert.equal(own.length, 1, `at ${i}`);
    assert.ok(own[0]!.weight <= 100, 'it was held back to fill a chunk');
  }
  assert.ok(user.waitingTexts <= before - 20);
});

test('a call starts within two chunks per unstarted call ahead of it, whatever calls arrive later', () => {
  const calls = fc.array(fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 12 }), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(calls, { minLength: 1, maxLength: 40 }), (inflow) => {
      const { waiting, add, user } = queue();
      const unstarted = new Map<EncodeCall, number>();
      let chunks = 0;
      const serve = (): boolean => {
        const chunk = waiting.nextChunk(2, true);
        if (chunk === null) return false;
        chunks++;
        count(waiting, chunk);
        for (const { call } of chunk.slices) unstarted.delete(call);
        for (const last of unstarted.values()) assert.ok(chunks < last);
        return true;
      };
      for (const arriving of inflow) {
        for (const lengths of arriving) {
          const ahead = unstarted.size;
          unstarted.set(add(lengths.map((length) => 'x'.repeat(length))), chunks + 2 * (ahead + 1));
        }
        serve();
      }
      while (serve());
      assert.deepEqual([unstarted.size, user.waitingTexts], [0, 0]);
    }),
  );
});

test('many calls of one encoder do not delay a call of another encoder in the same pool', () => {
  const { waiting, add } = queue();
  const [busy, quiet] = [new PoolUser(), new PoolUser()];
  for (let i = 0; i < 200; i++) add(['x'.repeat(400 + i), 'x'.repeat(700 + i)], undefined, busy);
  for (let i = 0; i < 5; i++) waiting.nextChunk(1, true);
  for (let i = 0; i < 10; i++) {
    const call = add(['a lone query'], undefined, quiet);
    const both = [waiting.nextChunk(1, true)!, waiting.nextChunk(1, true)!];
    const callers = both.flatMap(({ slices }) => slices.map((slice) => slice.call));
    assert.ok(callers.includes(call), `call ${i} had to wait`);
    assert.ok(
      callers.some(({ user }) => user === busy),
      'the busy encoder advances too',
    );
  }
});

test('each encoder of a pool has its own counts, and its calls can be removed without those of others', () => {
  const { waiting, add } = queue();
  const [one, two] = [new PoolUser(), new PoolUser()];
  const abort = new AbortController();
  add(['a', 'b', 'c'], undefined, one);
  const own = add(['d', 'e'], undefined, two);
  add(['f'], abort.signal, two);
  abort.abort();
  assert.deepEqual([one.waitingTexts, two.waitingTexts, one.droppedTexts, two.droppedTexts], [3, 2, 0, 1]);
  assert.deepEqual(waiting.takeCalls(two), [own]);
  assert.deepEqual([one.waitingTexts, two.waitingTexts], [3, 0]);
  const left: string[] = [];
  for (let chunk = waiting.nextChunk(1, true); chunk !== null; chunk = waiting.nextChunk(1, true)) {
    left.push(...textsOf(chunk));
  }
  assert.deepEqual(left.sort(), ['a', 'b', 'c']);
  assert.ok(Math.abs(waiting.weight) < 1e-6);
});

test('a chunk shares its room evenly among the calls of a bucket', () => {
  const { waiting, add } = queue();
  for (let i = 0; i < 3; i++) add(new Array(50).fill(`call ${i}`));
  count(waiting, waiting.nextChunk(1, true)!);
  const chunk = waiting.nextChunk(1, true)!;
  const shares = chunk.slices.map(({ indexes }) => indexes.length);
  assert.equal(new Set(chunk.slices.map(({ call }) => call)).size, 3);
  assert.ok(Math.max(...shares) - Math.min(...shares) <= 1, shares.join());
});

test('cancelled calls are garbage-collected even if other calls wait before them', async () => {
  const { waiting, add, user } = queue();
  for (let i = 0; i < 3; i++) add(['one', 'two', 'three']);
  const cancelled = Array.from({ length: 5 }, () => {
    const abort = new AbortController();
    const call = new WeakRef(add(['one', 'two'], abort.signal));
    abort.abort();
    return call;
  });
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  assert.ok(waiting.weight > 0);
  assert.equal(user.waitingTexts, 9);
  assert.equal(cancelled.filter((call) => call.deref() !== undefined).length, 0);
});
