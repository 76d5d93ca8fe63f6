import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { TrawlError } from '../src/base/errors.ts';
import { packageRoot } from '../src/base/package-root.ts';
import { installOnce, isInstalled } from './install-once.ts';
import { type Jdk, jdkOf, missingJdk } from './jdk.ts';
import { EngineUnavailable, ScriptProcess } from './script-process.ts';

interface Release {
  readonly version: string;
  /** Oldest major version of Java that loads it. */
  readonly java: number;
  /** The jars, each with its SHA-256. */
  readonly jars: Readonly<Record<string, string>>;
}

/** Newest first. */
const RELEASES: readonly Release[] = [
  {
    version: '10.6.0',
    java: 21,
    jars: {
      'lucene-core': '211424f423ff1afeb891095c2142a20a572e545906251f28b8faaa408d01f934',
      'lucene-analysis-common': '7e7fc5bcb7e2fd702701cfa7f5c209f28bdaf89cb8ef0ba379255c9d7c687430',
    },
  },
  {
    version: '9.12.3',
    java: 17,
    jars: {
      'lucene-core': 'b64a3f8098a7572034fb30085cdee01b34ec81fb0e5a31b471536af58dc6c01b',
      'lucene-analysis-common': 'fa571bd7caf0f0b4faf46a72ca004a7836f348c31d92bd522dddcc3d128d287e',
    },
  },
];
/**
 * The releases with which test/peers compares scores of texts, newest first. Trees of queries are scored as in 9.12.3: Lucene 10.1 and
 * newer rewrite some of them differently.
 *
 * @internal Exported for tests.
 */
export const LUCENE_RELEASES = RELEASES.map(({ version }) => version);
/** @internal Exported for tests. */
export const COMPARED_LUCENE = '9.12.3';
const PROGRAM = join(packageRoot, 'bench', 'baselines', 'Lucene.java');
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy';

const run = promisify(execFile);

/**
 * The lock of all that Maven installs into a cache: it writes into its repository without locking it.
 *
 * @internal Exported for tests.
 */
export function mavenLock(cache: string): string {
  return join(cache, 'maven.lock');
}

function luceneFolder(cache: string, { version }: Release): string {
  return join(cache, `lucene-${version}`);
}

/**
 * For the `skip` option of a test: false if `installLucene` has installed the version, else the reason.
 *
 * @internal Exported for tests.
 */
export function withoutLucene(cache: string, version = COMPARED_LUCENE): string | false {
  const release = RELEASES.find((known) => known.version === version);
  if (release === undefined) return `Lucene ${version} is not one of ${LUCENE_RELEASES.join(', ')}`;
  if (jdkOf(release.java) === undefined) return `Lucene ${version}: ${missingJdk(release.java)}`;
  return isInstalled(luceneFolder(cache, release))
    ? false
    : `Lucene ${version} is not installed: run npm run check -- peers or trawl bench baselines bm25 (needs Maven)`;
}

/**
 * Installs with Maven the jars of every release that a JDK of this machine loads, unless they are in the cache.
 *
 * @throws TrawlError USAGE if a JDK, Maven or a jar is missing, or a jar is another one.
 */
export async function installLucene(
  cache: string,
  { signal, note }: { signal?: AbortSignal; note(text: string): void },
): Promise<void> {
  const loadable = RELEASES.filter(({ java }) => jdkOf(java) !== undefined);
  if (loadable.length === 0) {
    const oldest = Math.min(...RELEASES.map(({ java }) => java));
    throw new TrawlError('USAGE', `Lucene: ${missingJdk(oldest)}. Debian: apt-get install openjdk-17-jdk-headless.`);
  }
  for (const release of loadable) {
    const folder = luceneFolder(cache, release);
    const options = { note, lock: mavenLock(cache), signal };
    await installOnce(folder, options, () => installRelease(folder, release, { signal, note }));
  }
}

async function installRelease(
  folder: string,
  { version, jars }: Release,
  { signal, note }: { signal: AbortSignal | undefined; note(text: string): void },
): Promise<void> {
  note(`Installing Lucene ${version} into ${folder} (once)`);
  for (const [name, checksum] of Object.entries(jars)) {
    const artifact = `-Dartifact=org.apache.lucene:${name}:${version}`;
    const args = ['--batch-mode', '--quiet', MAVEN_COPY, artifact, `-DoutputDirectory=${folder}`];
    try {
      await run('mvn', args, { signal });
    } catch (error) {
      signal?.throwIfAborted();
      const { code, stdout = '', message } = error as Error & { code?: string; stdout?: string };
      const reason = code === 'ENOENT' ? 'mvn was not found (Debian: apt-get install maven)' : stdout || message;
      throw new TrawlError('USAGE', `Maven could not install ${name} ${version}: ${reason.trim().slice(0, 500)}.`);
    }
    const jar = jarPath(folder, name, version);
    const found = createHash('sha256')
      .update(await readFile(jar))
      .digest('hex');
    if (found !== checksum)
      throw new TrawlError(
        'USAGE',
        `${jar} has the SHA-256 ${found}, expected ${checksum}. Remove it from Maven's repository.`,
      );
  }
}

/**
 * Starts bench/baselines/Lucene.java, which Java compiles in memory, with a release of Lucene: by default the newest one that
 * is installed and that a JDK of this machine loads.
 *
 * @throws EngineUnavailable if the jars or the source are missing.
 */
export function openLucene<Reply extends object>(
  cache: string,
  { version, maxHeap = '4g' }: { version?: string; maxHeap?: string } = {},
): ScriptProcess<Reply> {
  const usable = LUCENE_RELEASES.find((known) => (version ?? known) === known && withoutLucene(cache, known) === false);
  const release = RELEASES.find((known) => known.version === usable);
  const jdk: Jdk | undefined = release && jdkOf(release.java);
  if (release === undefined || jdk === undefined) {
    throw new EngineUnavailable(withoutLucene(cache, version) || 'no release of Lucene can be used');
  }
  if (!existsSync(PROGRAM)) throw new EngineUnavailable(`${PROGRAM} does not exist: baselines come with a checkout`);
  const folder = luceneFolder(cache, release);
  const jars = Object.keys(release.jars).map((name) => jarPath(folder, name, release.version));
  return new ScriptProcess<Reply>('lucene', jdk.java, [`-Xmx${maxHeap}`, '-cp', jars.join(delimiter), PROGRAM]);
}

function jarPath(folder: string, name: string, version: string): string {
  return join(folder, `${name}-${version}.jar`);
}
