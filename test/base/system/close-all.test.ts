import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeAll } from '../../../src/base/system/close-all.ts';

test('a part that cannot be closed does not keep the others open, and the first error is thrown', async () => {
  const closed: string[] = [];
  const part = (name: string, error?: Error): { close(): Promise<void> } => ({
    close: async () => {
      if (error !== undefined) throw error;
      closed.push(name);
    },
  });
  const parts = [part('a'), part('b', new Error('first')), undefined, part('c', new Error('second')), part('d')];
  await assert.rejects(closeAll(...parts), /first/);
  assert.deepEqual(closed, ['a', 'd']);
});
