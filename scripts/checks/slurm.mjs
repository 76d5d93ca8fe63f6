// deploy/slurm on a cluster of one node on this machine (apt-get install slurm-wlm munge).
// It starts the cluster with Debian's packages, as the current user, with its own ports, sockets and keys in a temporary
// folder; an installed Slurm is not touched.
//
// In each scenario a job array builds an index and a dependent job merges it. `alone` is undisturbed; `sigterm`, `requeue` and
// `time-limit` each interrupt one task. Each index is compared file for file with one built without Slurm. Arguments choose
// some of the scenarios.
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, root, setup } from '../setup.mjs';

const SHARDS = 4;
const MODEL = 'token-average-256';
/** Copies of the sample corpus, so that a shard takes long enough to be disturbed. */
const COPIES = 200;

for (const program of ['munged', 'slurmctld', 'slurmd', 'sbatch']) {
  if (spawnSync('sh', ['-c', `PATH="$PATH:/usr/sbin:/sbin" command -v ${program}`]).status !== 0) {
    fail(`${program} is not installed. Debian: apt-get install slurm-wlm munge`);
  }
}
await setup();
const folder = mkdtempSync(join(tmpdir(), 'trawl-slurm-'));
const daemons = [];
const env = {
  ...process.env,
  PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
  SLURM_CONF: join(folder, 'slurm.conf'),
  TRAWL: `${process.execPath} ${join(root, 'dist', 'cli', 'trawl.js')}`,
};
let failed = true;
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (interrupted = true));
try {
  await startCluster();
  const sample = readFileSync(join(root, 'corpus', 'sample', 'passages.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  const copies = Array.from({ length: COPIES }, (_, copy) =>
    sample.map((line) => line.replace(/"id": ?"/, (start) => `${start}${copy}-`)).join('\n'),
  );
  const corpus = join(folder, 'corpus.jsonl');
  writeFileSync(corpus, `${copies.join('\n')}\n`);

  const expected = join(folder, 'expected');
  for (let i = 0; i < SHARDS; i++)
    trawl('index', corpus, '--model', MODEL, '--out', expected, '--shard', `${i}/${SHARDS}`);
  trawl('merge', expected);

  const results = [];
  for (const [scenario, disturb, options] of chosenScenarios()) {
    const begun = performance.now();
    const out = join(folder, `index-${results.length}`);
    const { starts, requeued } = await build(out, corpus, options, disturb);
    const differing = differences(expected, out);
    results.push({
      scenario,
      starts,
      requeued,
      equal: differing.length === 0,
      seconds: Math.round((performance.now() - begun) / 1000),
    });
    process.stderr.write(`${JSON.stringify(results.at(-1))}\n`);
    if (differing.length > 0) throw new Error(`${scenario}: ${differing.join(', ')} differ from the undisturbed index`);
    if ((disturb !== undefined) !== requeued > 0) throw new Error(`${scenario}: ${requeued} jobs were requeued`);
    rmSync(out, { recursive: true });
  }
  const version = spawnSync('sbatch', ['--version'], { env, encoding: 'utf8' }).stdout.trim();
  process.stdout.write(
    `${JSON.stringify({ slurm: version, shards: SHARDS, passages: sample.length * COPIES, results })}\n`,
  );
  failed = false;
} finally {
  await cancelJobs();
  for (const daemon of daemons.reverse()) await stop(daemon);
  if (failed) process.stderr.write(`The logs are in ${folder}\n`);
  else rmSync(folder, { recursive: true });
}

function chosenScenarios() {
  const scenarios = [
    ['alone', undefined, []],
    // As Slurm does before a time limit or a preemption.
    ['sigterm', terminateStep, []],
    // As Slurm does after a node failure.
    ['requeue', requeueJob, []],
    // The shortest time limit is one minute. Slurm sends the signal 50 seconds before its end.
    ['time-limit', waitForTimeLimit, ['--time=1', '--signal=TERM@50']],
  ];
  const named = process.argv.slice(2);
  for (const name of named)
    if (!scenarios.some(([scenario]) => scenario === name))
      throw new Error(`${name} is not one of ${scenarios.map(([scenario]) => scenario).join(', ')}`);
  return scenarios.filter(([scenario]) => named.length === 0 || named.includes(scenario));
}

/** Submits the jobs, disturbs one, and waits for the merge. */
async function build(out, corpus, options, disturb) {
  const logs = `${out}-logs`;
  mkdirSync(logs);
  const submit = join(root, 'deploy', 'slurm', 'submit.sh');
  const shown = run(submit, [
    `--chdir=${logs}`,
    '--cpus-per-task=1',
    ...options,
    '--',
    SHARDS,
    out,
    corpus,
    '--model',
    MODEL,
  ]);
  const [, array, merge] = /^shards (\d+) merge (\d+)$/.exec(shown.trim()) ?? fail(`submit.sh printed ${shown}`);
  await disturb?.(array, logs);
  await until(
    () => ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'NODE_FAIL'].includes(stateOf(merge)),
    `job ${merge}`,
    240,
  );
  if (stateOf(merge) !== 'COMPLETED') throw new Error(`the merge job is ${stateOf(merge)}:\n${allLogs(logs)}`);
  const starts = allLogs(logs).match(/start \d+$/gm) ?? [];
  return { starts: starts.length, requeued: starts.filter((start) => start !== 'start 1').length };
}

async function terminateStep(array, logs) {
  run('scancel', ['--signal=TERM', `${(await embeddingTask(array, logs)).job}.0`]);
}

async function requeueJob(array, logs) {
  run('scontrol', ['requeue', (await embeddingTask(array, logs)).task]);
}

/** Stops the step until Slurm has sent the SIGTERM of the time limit; otherwise the step would finish before. */
async function waitForTimeLimit(array, logs) {
  const step = `${(await embeddingTask(array, logs)).job}.0`;
  run('scancel', ['--signal=STOP', step]);
  // Slurm checks time limits every 30 seconds.
  await sleep(42_000);
  run('scancel', ['--signal=CONT', step]);
}

/** Waits for a task that is embedding. @returns its id in the array, and the id of its job. */
async function embeddingTask(array, logs) {
  let found;
  await until(
    () => {
      const shown = run('squeue', ['--noheader', '--array', '--states=RUNNING', '--format=%i %A', '--jobs', array]);
      found = shown
        .trim()
        .split('\n')
        .map((line) => line.trim().split(' '))
        .map(([task, job]) => ({ task, job, log: join(logs, `trawl-shard-${task}.log`) }))
        .find(({ log }) => existsSync(log) && readFileSync(log, 'utf8').endsWith('encoding\n'));
      return found !== undefined;
    },
    'a task that is embedding',
    60,
  );
  return found;
}

function stateOf(job) {
  const { stdout } = spawnSync('scontrol', ['--oneliner', 'show', 'job', job], { env, encoding: 'utf8' });
  return /JobState=(\w+)/.exec(stdout ?? '')?.[1] ?? 'unknown';
}

function allLogs(logs) {
  return readdirSync(logs)
    .sort()
    .map((name) => readFileSync(join(logs, name), 'utf8'))
    .join('\n');
}

/** Files that differ between two indexes. Passage files are compared by the content hashes in the manifests. */
function differences(expected, found) {
  const below = (path) => readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = (path) =>
    below(path)
      .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
      .sort();
  const all = [...new Set([...names(expected), ...names(found)])];
  return all.filter((name) => {
    const [one, other] = [expected, found].map((path) => digestOf(join(path, name)));
    if (one === other) return false;
    return !(name.endsWith('.sqlite') && one !== undefined && other !== undefined);
  });
}

function digestOf(path) {
  try {
    return createHash('sha256').update(readFileSync(path)).digest('hex');
  } catch {
    return undefined;
  }
}

async function startCluster() {
  const at = (name) => join(folder, name);
  const user = userInfo().username;
  const [control, node] = await Promise.all([freePort(), freePort()]);
  for (const name of ['state', 'spool', 'run']) mkdirSync(at(name), { mode: 0o755 });
  writeFileSync(at('munge.key'), randomBytes(1024), { mode: 0o600 });
  const cores = Math.min(2, cpus().length);
  const host = hostname().split('.')[0];
  writeFileSync(
    env.SLURM_CONF,
    `ClusterName=trawl
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${control}
SlurmdPort=${node}
SlurmUser=${user}
SlurmdUser=${user}
AuthType=auth/munge
# A requeued job waits until its credential has expired.
AuthInfo=socket=${at('run')}/munge,cred_expire=5
StateSaveLocation=${at('state')}
SlurmdSpoolDir=${at('spool')}
SlurmctldPidFile=${at('run')}/slurmctld.pid
SlurmdPidFile=${at('run')}/slurmd.pid
SlurmctldLogFile=${at('slurmctld.log')}
SlurmdLogFile=${at('slurmd.log')}
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
KillWait=10
NodeName=${host} NodeAddr=127.0.0.1 CPUs=${cores} State=UNKNOWN
PartitionName=main Nodes=${host} Default=YES MaxTime=INFINITE State=UP
`,
  );
  const munge = [
    'key-file=munge.key',
    'socket=run/munge',
    'pid-file=run/munged.pid',
    'log-file=munged.log',
    'seed-file=munge.seed',
  ];
  daemons.push(
    spawn('munged', ['--foreground', '--force', ...munge.map((option) => `--${option.replace('=', `=${folder}/`)}`)], {
      env,
      stdio: 'ignore',
    }),
  );
  await until(() => spawnSync('munge', ['-n', '-S', join(folder, 'run', 'munge')], { env }).status === 0, 'munged', 20);
  daemons.push(spawn('slurmctld', ['-D'], { env, stdio: 'ignore' }));
  daemons.push(spawn('slurmd', ['-D', '-N', host], { env, stdio: 'ignore' }));
  const idle = () =>
    /idle/.test(spawnSync('sinfo', ['--noheader', '--format=%T'], { env, encoding: 'utf8' }).stdout ?? '');
  await until(idle, 'an idle node', 60);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Cancels all jobs, because their steps would outlive the daemons. */
async function cancelJobs() {
  const options = { env, encoding: 'utf8', timeout: 10_000 };
  spawnSync('scancel', ['--user', userInfo().username], options);
  for (let i = 0; i < 60; i++) {
    const { status, stdout } = spawnSync('squeue', ['--noheader'], options);
    if (status !== 0 || stdout.trim() === '') return;
    await sleep(300);
  }
}

async function stop(daemon) {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return;
  const ended = once(daemon, 'close');
  daemon.kill('SIGTERM');
  await Promise.race([ended, sleep(10_000).then(() => daemon.kill('SIGKILL'))]);
}

async function until(condition, what, seconds) {
  const end = performance.now() + seconds * 1000;
  while (!condition()) {
    if (interrupted) throw new Error('stopped by a signal');
    if (performance.now() > end) throw new Error(`waited ${seconds} seconds for ${what}`);
    if (daemons.some(({ exitCode }) => exitCode !== null)) throw new Error('a daemon of the cluster ended');
    await sleep(300);
  }
}

function trawl(...args) {
  run(process.execPath, [join(root, 'dist', 'cli', 'trawl.js'), ...args, '--quiet']);
}

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args.map(String), {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${status}: ${stderr}${error ?? ''}`);
  return stdout;
}
