import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { environmentVariable } from '../src/base/options/environment.ts';

/** A JDK, which has the compiler that `java FILE.java` needs. */
export interface Jdk {
  /** Its major version. */
  readonly version: number;
  /** The path of `java`. */
  readonly java: string;
}

/** Where systems install JDKs: Linux, macOS. */
const FOLDERS = ['/usr/lib/jvm', '/Library/Java/JavaVirtualMachines'];

/**
 * The JDKs of JAVA_HOME, of the PATH and of the system's folders, oldest first.
 *
 * @internal Exported for tests.
 */
export function findJdks(folders: readonly string[] = FOLDERS): readonly Jdk[] {
  const home = environmentVariable('JAVA_HOME');
  const installed = folders
    .filter(existsSync)
    .flatMap((folder) =>
      readdirSync(folder).flatMap((name) => [join(folder, name), join(folder, name, 'Contents', 'Home')]),
    );
  const bins = [
    ...[...(home ? [home] : []), ...installed].map((each) => join(each, 'bin')),
    ...(environmentVariable('PATH') ?? '').split(delimiter),
  ];
  return [...new Set(bins.flatMap(homeOf))].flatMap(jdkIn).sort((a, b) => a.version - b.version);
}

/** The oldest JDK of at least this version: releases of Java are tried with what was there before them. */
export function jdkOf(version: number): Jdk | undefined {
  return findJdks().find((jdk) => jdk.version >= version);
}

/** Such as «a JDK of version 21 or newer is needed; found 17». */
export function missingJdk(version: number): string {
  const found = [...new Set(findJdks().map((jdk) => jdk.version))];
  return (
    `a JDK of version ${version} or newer is needed; found ${found.length === 0 ? 'none' : found.join(' and ')} ` +
    `(JAVA_HOME, PATH, ${FOLDERS.join(', ')})`
  );
}

/** The home of the JDK whose compiler is in this folder, or to which a link there leads, as on the PATH and in Homebrew's folders. */
function homeOf(bin: string): readonly string[] {
  const compiler = join(bin, 'javac');
  return bin !== '' && existsSync(compiler) ? [dirname(dirname(realpathSync(compiler)))] : [];
}

function jdkIn(home: string): readonly Jdk[] {
  const release = join(home, 'release');
  if (!existsSync(release)) return [];
  // "17.0.15"; "1.8.0_402" is Java 8.
  const version = /^JAVA_VERSION="(?:1\.)?(\d+)/m.exec(readFileSync(release, 'utf8'))?.[1];
  return version === undefined ? [] : [{ version: Number(version), java: join(home, 'bin', 'java') }];
}
