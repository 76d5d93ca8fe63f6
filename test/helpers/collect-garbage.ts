import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Runs V8's garbage collector now. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
