import { spawnSync } from 'node:child_process';

/** The major version of javac, which `java FILE.java` needs; undefined: there is none. */
export function javaVersion(): number | undefined {
  const { stdout, stderr } = spawnSync('javac', ['-version'], { encoding: 'utf8' });
  const found = /javac (\d+)/.exec(`${stdout}${stderr}`);
  return found === null ? undefined : Number(found[1]);
}
