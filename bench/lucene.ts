import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { TrawlError } from '../src/errors.ts';
import { packageRoot } from '../src/package-root.ts';
import { EngineUnavailable, ScriptProcess } from './script-process.ts';

/** The newest Lucene that Java 17 can load. */
const VERSION = '9.12.3';
/** The jars, each with its SHA-256. */
const JARS: Readonly<Record<string, string>> = {
  'lucene-core': 'b64a3f8098a7572034fb30085cdee01b34ec81fb0e5a31b471536af58dc6c01b',
  'lucene-analysis-common': 'fa571bd7caf0f0b4faf46a72ca004a7836f348c31d92bd522dddcc3d128d287e',
};
const PROGRAM = join(packageRoot, 'bench', 'baselines', 'Lucene.java');
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy';
const OLDEST_JAVA = 17;

const run = promisify(execFile);

function luceneFolder(cache: string): string {
  return join(cache, `lucene-${VERSION}`);
}

/** For the `skip` option of a test: false if `installLucene` has run, else the reason. */
export function withoutLucene(cache: string): string | false {
  return existsSync(join(luceneFolder(cache), '.complete'))
    ? false
    : `Lucene ${VERSION} is not installed: run npm run test:peers or trawl bench baselines bm25 (needs a JDK of version 17 or newer, and Maven)`;
}

/**
 * Installs Lucene's jars into the cache with Maven, if they are missing. Checks that Java can run.
 *
 * @throws TrawlError USAGE if Java 17, Maven or a jar is missing, or a jar is another one.
 */
export async function installLucene(
  cache: string,
  { signal, note }: { signal?: AbortSignal; note(text: string): void },
): Promise<void> {
  if (withoutLucene(cache) === false) return;
  const java = await javaVersion(signal);
  if (java === undefined || java < OLDEST_JAVA) {
    const found = java === undefined ? 'no javac was found' : `javac is version ${java}`;
    throw new TrawlError(
      'USAGE',
      `Lucene needs a JDK, version 17 or newer; ${found}. Debian: apt-get install openjdk-17-jdk-headless.`,
    );
  }
  const folder = luceneFolder(cache);
  note(`Installing Lucene ${VERSION} into ${folder} (once)`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [name, checksum] of Object.entries(JARS)) {
    const artifact = `-Dartifact=org.apache.lucene:${name}:${VERSION}`;
    const args = ['--batch-mode', '--quiet', MAVEN_COPY, artifact, `-DoutputDirectory=${folder}`];
    try {
      await run('mvn', args, { signal });
    } catch (error) {
      signal?.throwIfAborted();
      const { code, stdout = '', message } = error as Error & { code?: string; stdout?: string };
      const reason = code === 'ENOENT' ? 'mvn was not found (Debian: apt-get install maven)' : stdout || message;
      throw new TrawlError('USAGE', `Maven could not install ${name} ${VERSION}: ${reason.trim().slice(0, 500)}.`);
    }
    const jar = jarPath(folder, name);
    const found = createHash('sha256')
      .update(await readFile(jar))
      .digest('hex');
    if (found !== checksum)
      throw new TrawlError(
        'USAGE',
        `${jar} has the SHA-256 ${found}, expected ${checksum}. Remove it from Maven's repository.`,
      );
  }
  await writeFile(join(folder, '.complete'), '');
}

/**
 * Starts bench/baselines/Lucene.java, which Java compiles in memory.
 *
 * @throws EngineUnavailable if the jars or the source are missing.
 */
export function openLucene<Reply extends object>(cache: string, maxHeap = '4g'): ScriptProcess<Reply> {
  const missing = withoutLucene(cache);
  if (missing !== false) throw new EngineUnavailable(missing);
  if (!existsSync(PROGRAM)) throw new EngineUnavailable(`${PROGRAM} does not exist: baselines come with a checkout`);
  const folder = luceneFolder(cache);
  const jars = Object.keys(JARS).map((name) => jarPath(folder, name));
  return new ScriptProcess<Reply>('lucene', 'java', [`-Xmx${maxHeap}`, '-cp', jars.join(delimiter), PROGRAM]);
}

function jarPath(folder: string, name: string): string {
  return join(folder, `${name}-${VERSION}.jar`);
}

/** The major version of javac, which `java FILE.java` needs. */
async function javaVersion(signal: AbortSignal | undefined): Promise<number | undefined> {
  try {
    const { stdout, stderr } = await run('javac', ['-version'], { signal });
    const found = /javac (\d+)/.exec(`${stdout}${stderr}`);
    return found === null ? undefined : Number(found[1]);
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}
