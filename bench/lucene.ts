import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { TrawlError } from '../src/base/errors.ts';
import { packageRoot } from '../src/base/package-root.ts';
import { installOnce, isInstalled } from './install-once.ts';
import { javaVersion } from './java-version.ts';
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
    version: '10.3.2',
    java: 21,
    jars: {
      'lucene-core': 'c835a3cc27cd572c2c8d93771c53adfe97bc11e1abcc353b87a5d290f8a01a08',
      'lucene-analysis-common': '1403e0df203a9037628015bcd9ca46cfa899430bdfb939374ccecc34cdcdf46b',
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
 * The release with which test/peers compares scores: Lucene 10.1 and newer rewrite some composed queries differently.
 *
 * @internal Exported for tests.
 */
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
  return RELEASES.some((release) => release.version === version && isInstalled(luceneFolder(cache, release)))
    ? false
    : `Lucene ${version} is not installed: run npm run check -- peers or trawl bench baselines bm25 (needs a JDK of version 17 or newer, and Maven)`;
}

/**
 * Installs with Maven the jars of every release that this Java loads, unless they are in the cache.
 *
 * @throws TrawlError USAGE if Java 17, Maven or a jar is missing, or a jar is another one.
 */
export async function installLucene(
  cache: string,
  { signal, note }: { signal?: AbortSignal; note(text: string): void },
): Promise<void> {
  const java = javaVersion();
  const loadable = RELEASES.filter((release) => java !== undefined && java >= release.java);
  if (loadable.length === 0) {
    const found = java === undefined ? 'no javac was found' : `javac is version ${java}`;
    throw new TrawlError(
      'USAGE',
      `Lucene needs a JDK, version 17 or newer; ${found}. Debian: apt-get install openjdk-17-jdk-headless.`,
    );
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
 * is installed and that this Java loads.
 *
 * @throws EngineUnavailable if the jars or the source are missing.
 */
export function openLucene<Reply extends object>(
  cache: string,
  { version, maxHeap = '4g' }: { version?: string; maxHeap?: string } = {},
): ScriptProcess<Reply> {
  const java = javaVersion() ?? 0;
  const release = RELEASES.find(
    (known) =>
      (version ?? known.version) === known.version && java >= known.java && isInstalled(luceneFolder(cache, known)),
  );
  if (release === undefined) throw new EngineUnavailable(withoutLucene(cache, version) || `javac is version ${java}`);
  if (!existsSync(PROGRAM)) throw new EngineUnavailable(`${PROGRAM} does not exist: baselines come with a checkout`);
  const folder = luceneFolder(cache, release);
  const jars = Object.keys(release.jars).map((name) => jarPath(folder, name, release.version));
  return new ScriptProcess<Reply>('lucene', 'java', [`-Xmx${maxHeap}`, '-cp', jars.join(delimiter), PROGRAM]);
}

function jarPath(folder: string, name: string, version: string): string {
  return join(folder, `${name}-${version}.jar`);
}
