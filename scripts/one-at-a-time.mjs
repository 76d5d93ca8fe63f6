// Of several set-ups of a checkout, one at a time may change its packages.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from './steps.mjs';

/** Waits until no other running process has the file, and creates it. @returns a function that removes it. */
export async function oneAtATime(file) {
  for (let waited = false; !create(file); waited = true) {
    const pid = owner(file);
    if (pid !== undefined && !isRunning(pid)) {
      takeAway(file, pid);
    } else {
      if (!waited) process.stderr.write(`Waiting for another set-up${pid === undefined ? '' : ` (process ${pid})`}\n`);
      await sleep(200);
    }
  }
  const release = () => rmSync(file, { force: true });
  process.once('exit', release);
  return () => {
    process.removeListener('exit', release);
    release();
  };
}

function create(file) {
  try {
    writeFileSync(file, `${process.pid}`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

/** The process that created the file; undefined if it is gone or not yet written. */
function owner(file) {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10) || undefined;
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** Removes the file of an ended process, unless another process has done so and has created its own. */
function takeAway(file, pid) {
  const moved = `${file}.${process.pid}`;
  try {
    renameSync(file, moved);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return;
  }
  if (owner(moved) === pid) rmSync(moved, { force: true });
  else renameSync(moved, file);
}
