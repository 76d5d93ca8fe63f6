import { isNodeError } from '../src/errors.ts';
import { EXIT } from './command.ts';

let guarded = false;

/**
 * Standard output and error may fail at any time. A reader that has seen enough (`trawl search … | head`) is no error:
 * the rest is dropped, and the work goes on to its end. A full disk behind `> file` is one.
 */
export function guardOutputStreams(): void {
  if (guarded) return;
  guarded = true;
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error) => {
    if (isNodeError(error) && error.code === 'EPIPE') return;
    process.stderr.write(`trawl: standard output cannot be written: ${error.message}\n`);
    process.exit(EXIT.failed);
  });
}
