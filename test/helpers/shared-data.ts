import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';

const SHARED_DATA = join(packageRoot, '..', 'shared', 'data');

/** Absolute path of a file of the shared test data, which is not part of the repository. */
export function sharedData(path: string): string {
  return join(SHARED_DATA, path);
}

/** For the `skip` option of a test: false if the file exists, else the reason. */
export function withoutSharedData(path: string): string | false {
  return existsSync(sharedData(path)) ? false : `../shared/data/${path} does not exist`;
}
