import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runModule } from '../../helpers/run-module.ts';

test('a process ends with its exit code although something keeps it running, after its exit handlers', () => {
  const { status, stdout, stderr } = runModule(`
    const { exitProcess } = await import('#root/src/base/system/exit-process.js');
    setInterval(() => undefined, 1000);
    process.on('exit', (code) => console.log('exit handler: ' + code));
    exitProcess(7);
    console.log('the caller goes on');
  `);
  assert.deepEqual(
    { status, stdout, stderr },
    { status: 7, stdout: 'the caller goes on\nexit handler: 7\n', stderr: '' },
  );
});

test('the first exit code counts when a process is ended twice', () => {
  const { status } = runModule(`
    const { exitProcess } = await import('#root/src/base/system/exit-process.js');
    exitProcess(3);
    exitProcess(4);
  `);
  assert.equal(status, 3);
});
