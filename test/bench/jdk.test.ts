import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { findJdks } from '../../bench/jdk.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

test('JDKs in the folder of a system are found by their release files, oldest first, links resolved; a JRE is not one', async (t) => {
  const folder = await tempFolder(t);
  const add = async (name: string, release: string | null, programs: readonly string[]): Promise<void> => {
    await mkdir(join(folder, name, 'bin'), { recursive: true });
    for (const program of programs) await writeFile(join(folder, name, 'bin', program), '');
    if (release !== null) await writeFile(join(folder, name, 'release'), release);
  };
  await add('temurin-25', 'IMPLEMENTOR="Eclipse Adoptium"\nJAVA_VERSION="25.0.3"\n', ['java', 'javac']);
  await add('old', 'JAVA_VERSION="1.8.0_402"\n', ['java', 'javac']);
  await add('jre-21', 'JAVA_VERSION="21.0.1"\n', ['java']);
  await add('unnamed', null, ['java', 'javac']);
  await add('mac.jdk/Contents/Home', 'JAVA_VERSION="17"\n', ['java', 'javac']);
  await symlink(join(folder, 'nowhere'), join(folder, 'broken'));
  await symlink(join(folder, 'temurin-25'), join(folder, 'default'));
  // As Homebrew installs: the folder of links has no release file.
  await add('openjdk@21/libexec', 'JAVA_VERSION="21.0.7"\n', ['java', 'javac']);
  await mkdir(join(folder, 'openjdk@21', 'bin'));
  await symlink(join(folder, 'openjdk@21', 'libexec', 'bin', 'javac'), join(folder, 'openjdk@21', 'bin', 'javac'));
  const found = findJdks([folder, join(folder, 'absent')]).filter(({ java }) => java.startsWith(folder));
  assert.deepEqual(found, [
    { version: 8, java: join(folder, 'old', 'bin', 'java') },
    { version: 17, java: join(folder, 'mac.jdk', 'Contents', 'Home', 'bin', 'java') },
    { version: 21, java: join(folder, 'openjdk@21', 'libexec', 'bin', 'java') },
    { version: 25, java: join(folder, 'temurin-25', 'bin', 'java') },
  ]);
});
