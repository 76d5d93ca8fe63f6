import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writingFailed } from '../../../indexer/hub/writing-failed.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const systemError = (code: string): Error => Object.assign(new Error(`${code}: write`), { code });

test('a download has different errors for a full disk, a full quota and a folder that cannot be written', () => {
  for (const [code, expected, message] of [
    ['ENOSPC', 'DISK_FULL', /^\/x\/model\.bin: no space left on the disk\. .*received data is kept/],
    ['EDQUOT', 'DISK_FULL', /^\/x\/model\.bin: the disk quota is used up\. .*received data is kept/],
    ['EROFS', 'OUTPUT_NOT_WRITABLE', /^\/x\/model\.bin cannot be written: the file system is read-only/],
    ['EACCES', 'OUTPUT_NOT_WRITABLE', /permission denied/],
    ['EBADF', 'OUTPUT_NOT_WRITABLE', /^\/x\/model\.bin cannot be written: the system reports EBADF\. Check the disk/],
  ] as const) {
    const cause = systemError(code);
    assert.throws(
      () => writingFailed('/x/model.bin')(cause),
      (error) => trawlError(expected, message)(error) && (error as TrawlError).details['path'] === '/x/model.bin',
    );
  }
});

test('errors that are not of the operating system pass unchanged', () => {
  for (const error of [new TypeError('a bug'), new TrawlError('CANCELLED', 'Stopped.'), 7]) {
    assert.throws(
      () => writingFailed('/x')(error),
      (thrown) => thrown === error,
    );
  }
});
