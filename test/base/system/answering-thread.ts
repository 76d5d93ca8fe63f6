import { workerData } from 'node:worker_threads';
import { TrawlError } from '../../../src/base/errors.ts';
import { answerCalls } from '../../../src/base/system/thread-calls.ts';

export type Asked = 'refuse' | 'die' | Uint8Array<ArrayBuffer> | number;

/** A thread for tests: answers a number with its double, and bytes with the same bytes. */
answerCalls(async () => {
  if (workerData === 'broken') throw new TrawlError('MODEL_INVALID', 'The thread cannot open its model.');
  return async (asked: Asked, transfer) => {
    if (asked === 'refuse') throw new TrawlError('EMPTY_QUERY', 'Refused.', { details: { maxTied: 3 } });
    if (asked === 'die') process.exit(3);
    if (typeof asked === 'number') {
      // The first of two calls takes longer than the second.
      for (let turn = asked; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve));
      return 2 * asked;
    }
    transfer.push(asked.buffer);
    return asked;
  };
});
