import { setPriority } from 'node:os';
import { serializeError } from '../../src/base/errors.ts';
import { exitProcess } from '../../src/base/system/exit-process.ts';
import { type RefreshJob, type RefreshReply, runRefresh } from './refresh-job.ts';

/** Searches come first. */
const PRIORITY = 10;

// The program of a child process of the server, which does one job and ends. It ends with the server, too.
process.once('disconnect', () => exitProcess(1));
process.once('message', async (job: RefreshJob) => {
  setPriority(PRIORITY);
  let reply: RefreshReply;
  try {
    reply = { ok: true, result: await runRefresh(job) };
  } catch (error) {
    reply = { ok: false, error: serializeError(error) };
  }
  process.send!(reply, () => exitProcess(0));
});
