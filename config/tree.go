package config

import (
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// The comments of the fields below are the reference that Docs and JSONSchema
// print (fielddocs.go is generated from them, see generate_test.go). Tags:
//
//	yaml     name of the option; "-" is not an option
//	default  YAML text of the default; without it the default is empty or zero
//	enum     allowed values, separated by |
//	min max  limits, included; min ">0" excludes zero

// Config is the whole configuration of a pipeline.
type Config struct {
	// Name of the pipeline, and the owner of its table: 1 to 100 letters,
	// digits, `.`, `_` or `-`. Required.
	Pipeline string `yaml:"pipeline"`
	// Local directory of the index and the spool; it may be lost. Created with
	// mode 0700. Not inside the table's location.
	StateDir string `yaml:"state_dir" default:"./state"`
	// Where records come from; exactly one of kafka, files, stdin, datagen.
	// `run` needs it, the table commands and the library do not; a program that
	// wants its `event_time` or `bad_records` names `stdin: {}`, which is not read.
	Source *Source `yaml:"source"`
	// The table that is written.
	Table Table `yaml:"table"`
	// When what was read becomes durable.
	Checkpoint Checkpoint `yaml:"checkpoint"`
	// How rows are spread over part files.
	Writer Writer `yaml:"writer"`
	// When a part file is closed. Every checkpoint closes all of them.
	Rolling Rolling `yaml:"rolling"`
	// How small part files become published files.
	Compaction Compaction `yaml:"compaction"`
	// When and how a partition is announced.
	Commit Commit `yaml:"commit"`
	// The object store of a table at s3://.
	S3 S3 `yaml:"s3"`
	// The catalogue that learns of partitions.
	Metastore Metastore `yaml:"metastore"`
	// What a process may use at most.
	Limits Limits `yaml:"limits"`
	// How a table on HDFS (location `hdfs://`) is reached.
	HDFS HDFS `yaml:"hdfs"`
	// How long the table log keeps what happened, for `log` and `fsck`; 0 keeps
	// only what is needed to go on.
	History Duration `yaml:"history" default:"7d" min:"0"`
	// Metrics, health and the status page (not in this build).
	HTTP HTTP `yaml:"http"`

	// Writers names the writers a library user will open; they hold the
	// watermark until they are opened. Not an option of the file.
	Writers []string `yaml:"-"`
	// OnCheckpoint is told after each complete checkpoint what is durable: the
	// position of each writer that moved by its name. The pipeline waits for it,
	// so that it must not wait for the sink in turn. Not an option of the file.
	OnCheckpoint func(positions map[string]string) `yaml:"-"`

	filled bool             // defaults are in, zero means zero
	where  map[string]place // place of each option that was given, by path
}

// Source says where records come from and how they are decoded.
type Source struct {
	// Read topics of a Kafka cluster (read-committed).
	Kafka *Kafka `yaml:"kafka"`
	// Read files.
	Files *Files `yaml:"files"`
	// Read standard input.
	Stdin *Stdin `yaml:"stdin"`
	// Make up records, for trials and benchmarks.
	Datagen *Datagen `yaml:"datagen"`
	// Format of the records. `raw` puts a message's value into the one column
	// that is not metadata; it and `avro` need the kafka source. (`parquet` is
	// not in this build.) datagen ignores it.
	Format string `yaml:"format" default:"json" enum:"json|csv|avro|raw|parquet"`
	// Details of the csv format.
	CSV CSV `yaml:"csv"`
	// How timestamps are written: RFC 3339 text, or a number of seconds,
	// milli-, micro- or nanoseconds since 1970-01-01 UTC.
	Timestamps string `yaml:"timestamps" default:"rfc3339" enum:"rfc3339|s|ms|us|ns"`
	// A longer record is a bad record. At most `limits.memory`.
	MaxRecord Bytes `yaml:"max_record" default:"1MB" min:">0" max:"1GB"`
	// Readers that work at the same time.
	Readers int `yaml:"readers" default:"1" min:"1" max:"1024"`
	// The time of a record, for the watermark.
	EventTime EventTime `yaml:"event_time"`
	// What happens to a record that cannot be decoded.
	BadRecords BadRecords `yaml:"bad_records"`
	// What the end of a bounded source means: `complete` ends every trigger,
	// so that all partitions are announced; `triggers` announces only what its
	// trigger allows. Default: `triggers` for kafka, `complete` for the others.
	AtEnd string `yaml:"at_end" enum:"complete|triggers"`

	filled bool
}

// Kafka reads topics of a Kafka cluster.
type Kafka struct {
	// Addresses to start from, `host:port`. Required.
	Brokers []string `yaml:"brokers"`
	// Topics to read, all partitions. Required, unless there is a
	// `topic_pattern`.
	Topics []string `yaml:"topics"`
	// Regular expression that topics to read match from their first to their
	// last letter, instead of `topics`; new topics are found as they are made.
	// Topics whose names start with `__` are Kafka's own and do not match.
	TopicPattern string `yaml:"topic_pattern"`
	// Group name under which positions are shown to lag tools. Default: the
	// name of the pipeline.
	Group string `yaml:"group"`
	// Where a partition without a position starts: `earliest`, `latest`, an
	// RFC 3339 time (the first record that is not older), an offset, or
	// offsets by partition, `0=1200,1=800` or `clicks/0=1200,views/0=7`. A
	// partition that is added later starts at its first record.
	Start string `yaml:"start" default:"earliest"`
	// Where to end: `end` (the last record that can be read when the run
	// starts), an RFC 3339 time, an offset, or offsets by partition; the record
	// at it is not read any more. Empty: never.
	Until string `yaml:"until"`
	// What to do when the cluster no longer has the next record to be read:
	// `halt` and say which are missing; go on at the `earliest` there is, which
	// gives up what is missing; or at the `latest`.
	OffsetOutOfRange string `yaml:"offset_out_of_range" default:"halt" enum:"halt|earliest|latest"`
	// How often new topics and partitions, and topics made anew, are looked for.
	Discover Duration `yaml:"discover" default:"30s" min:">0"`
	// How long the start of a run tries to reach the cluster, before it fails.
	// After a third of it a run that goes on with a table's positions begins
	// without the partitions that do not answer.
	StartTimeout Duration `yaml:"start_timeout" default:"30s" min:">0"`
	// Columns that take what a message has beside its value.
	Metadata Metadata `yaml:"metadata"`
	// Encryption, and the certificate to show; `tls: {}` trusts the
	// authorities of the system.
	TLS *TLS `yaml:"tls"`
	// Authentication.
	SASL *SASL `yaml:"sasl"`
	// The registry that has the schemas of format avro.
	SchemaRegistry *SchemaRegistry `yaml:"schema_registry"`

	filled bool
}

// Metadata names columns of the table that take what a message has beside its
// value. A field of the value with such a name is ignored.
type Metadata struct {
	// Column of the topic's name, a string.
	Topic string `yaml:"topic"`
	// Column of the partition's number, an int or bigint.
	Partition string `yaml:"partition"`
	// Column of the offset, a bigint.
	Offset string `yaml:"offset"`
	// Column of the message's time, a timestamp.
	Timestamp string `yaml:"timestamp"`
	// Column of the key, a string or binary.
	Key string `yaml:"key"`
	// Column of the headers, a `map<string,string>` or `map<string,binary>`;
	// of a header that is there twice the last counts.
	Headers string `yaml:"headers"`
}

// TLS says how connections are encrypted.
type TLS struct {
	// PEM file of the authorities to trust, read at the start. Empty: those of the
	// system.
	CA string `yaml:"ca"`
	// PEM file of the certificate to show, with its chain (mutual TLS). It and the
	// key are read at every connection, so that they may be renewed.
	Cert string `yaml:"cert"`
	// Its private key, PEM, without a password.
	Key Secret `yaml:"key"`
	// Name that the server's certificate must have. Empty: the host connected
	// to.
	ServerName string `yaml:"server_name"`
}

// SASL says who connects.
type SASL struct {
	// How the password is proven, or GSSAPI for Kerberos.
	Mechanism string `yaml:"mechanism" default:"SCRAM-SHA-512" enum:"PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|GSSAPI"`
	// Name of the user.
	Username string `yaml:"username"`
	// Password of the user.
	Password Secret `yaml:"password"`
	// Details of GSSAPI.
	Kerberos Kerberos `yaml:"kerberos"`
}

// Kerberos is who logs in, where, and for which service: the same for Kafka, the
// metastore and HDFS.
type Kerberos struct {
	// Principal that logs in, `name` or `name/host`, with `@REALM` or without.
	// Required with a keytab; a ticket cache has it.
	Principal string `yaml:"principal"`
	// Keytab of the principal, a path; nobody but its owner may read it. It is
	// read at each login, and logging in again is up to hivesink.
	Keytab string `yaml:"keytab"`
	// Ticket cache in place of a keytab, a path; nobody but its owner may read
	// it. Somebody else must keep it fresh: it is read again when tickets are
	// needed.
	TicketCache string `yaml:"ticket_cache"`
	// Path of the realm's krb5.conf. Left out: KRB5_CONFIG, else /etc/krb5.conf.
	Krb5Conf string `yaml:"krb5_conf"`
	// The server. Kafka: the first part of the brokers' principals, `kafka`
	// unless given. Metastore: its principal (`hive.metastore.kerberos.principal`),
	// `hive/_HOST` unless given. HDFS: principal of the name nodes, such as
	// `nn/_HOST`; left out, what the Hadoop configuration says. `_HOST` stands
	// for the host of the address.
	Service string `yaml:"service"`
}

// SchemaRegistry has the schemas of Avro messages.
type SchemaRegistry struct {
	// Address with the API that Confluent's registry speaks, such as
	// `http://localhost:8081`; several are separated by commas. Required.
	URL string `yaml:"url"`
	// Name of the user (HTTP basic authentication).
	Username string `yaml:"username"`
	// Password of the user.
	Password Secret `yaml:"password"`
	// Encryption, for `https`.
	TLS *TLS `yaml:"tls"`
}

// Files reads files.
type Files struct {
	// Patterns of the files to read (`*`, `?`, `[a-z]`); `.gz` and `.zst` are
	// decompressed. Relative ones start at the working directory. Required.
	Paths []string `yaml:"paths"`
	// Go on reading as files grow and appear. Not in this build.
	Follow bool `yaml:"follow"`
}

// Stdin reads standard input. It has no options.
type Stdin struct{}

// Datagen makes up records.
type Datagen struct {
	// Number of records; 0 never ends.
	Rows int64 `yaml:"rows" default:"1000000" min:"0"`
	// Records per second; 0 is as fast as possible.
	Rate int64 `yaml:"rate" min:"0"`
	// The same seed makes the same records.
	Seed int64 `yaml:"seed" default:"1"`
	// Share of the records whose event time is late, 0 to 1.
	Late float64 `yaml:"late" default:"0.01" min:"0" max:"1"`
	// How the values of single columns are drawn, by column name.
	Columns map[string]DatagenColumn `yaml:"columns"`

	filled bool
}

// DatagenColumn says how the values of a column are drawn.
type DatagenColumn struct {
	// Number of different values; 0 leaves it to the type of the column.
	Values int64 `yaml:"values" min:"0"`
	// Zipf exponent of their frequencies; 0 draws all alike.
	Skew float64 `yaml:"skew" min:"0"`
}

// CSV has the details of the csv format.
type CSV struct {
	// The first record names the columns; without it, fields are in the order
	// of `table.columns`. Default of kafka: false.
	Header bool `yaml:"header" default:"true"`
	// Between two fields: one ASCII character.
	Delimiter string `yaml:"delimiter" default:"\",\""`
	// Around a field; doubled inside it. One ASCII character, or empty for no
	// quoting.
	Quote string `yaml:"quote" default:"'\"'"`
	// An unquoted field of this text is null.
	Null string `yaml:"null"`
}

// EventTime says what the time of a record is.
type EventTime struct {
	// A timestamp or date column. Empty: records have no event time.
	Column string `yaml:"column"`
	// How much out of order records may be: the watermark stays that far
	// behind the latest time seen.
	OutOfOrderness Duration `yaml:"out_of_orderness" default:"30s" min:"0"`
	// A source partition that is caught up for this long no longer holds the
	// watermark; 0 lets it hold for ever.
	IdleTimeout Duration `yaml:"idle_timeout" default:"1m" min:"0"`
	// A record later than now and this does not advance the watermark.
	MaxFuture Duration `yaml:"max_future" default:"1h" min:"0"`
}

// BadRecords says what happens to a record that cannot be decoded.
type BadRecords struct {
	// `dead-letter` keeps it in the table `<name>_dead`, `fail` ends the run,
	// `drop` counts it.
	Policy string `yaml:"policy" default:"dead-letter" enum:"dead-letter|fail|drop"`
	// With dead-letter and drop: more than this many in a run end it; 0 allows
	// none.
	Limit int64 `yaml:"limit" default:"1000" min:"0"`
}

// Table is the table that is written.
type Table struct {
	// Database of the table: letters, digits, `_`; taken as lower case.
	Database string `yaml:"database" default:"default"`
	// Name of the table: letters, digits, `_`; taken as lower case. Required.
	Name string `yaml:"name"`
	// Where the table lies: `file://`, `hdfs://` or `s3://`; without a scheme a
	// local path, relative ones starting at the working directory. Required.
	Location Location `yaml:"location"`
	// Columns with Hive types, such as `id bigint` or `id bigint not null`.
	// Left out, they are read from the metastore (type hive).
	Columns []hivetype.Field `yaml:"columns"`
	// Partition columns: the name of a column, or `name: transform`. Transforms:
	// `date(ts)` 2026-01-31, `year(ts)` 2026, `month(ts)` 01, `day(ts)` 31,
	// `hour(ts)` 00 to 23, `format(ts, "yyyyMMdd")`, `bucket(16, id)`,
	// `truncate(4, code)`. Empty: the table is not partitioned.
	PartitionedBy []layout.Transform `yaml:"partitioned_by"`
	// IANA zone of the transforms, of partition time, and of timestamps
	// without an offset.
	TimeZone string `yaml:"time_zone" default:"UTC"`
	// Codec of published files.
	Compression string `yaml:"compression" default:"zstd" enum:"zstd|snappy|gzip|lz4|none"`
	// Format of the data files. Only Parquet can be written.
	Format string `yaml:"format" default:"parquet"`
	// Physical types of data files, for readers that do not know the usual ones.
	Parquet TableParquet `yaml:"parquet"`

	// ColumnText has the columns as they were written, for messages.
	ColumnText []string `yaml:"-"`
}

// TableParquet has physical types of data files. A change applies to new files.
type TableParquet struct {
	// `int64` is microseconds, adjusted to UTC. `int96` is the deprecated type
	// that Hive before 4 and Impala read as an instant; such a column has no
	// statistics, so that nothing is skipped by it.
	Timestamps string `yaml:"timestamps" default:"int64" enum:"int64|int96"`
	// `shortest` is INT32 or INT64 where the precision allows, `fixed` always
	// FIXED_LEN_BYTE_ARRAY, as Hive before 4 and Spark's legacy format have it.
	Decimals string `yaml:"decimals" default:"shortest" enum:"shortest|fixed"`
}

// Checkpoint says when what was read becomes durable.
type Checkpoint struct {
	// Time from one checkpoint to the next. The first one comes after half of it.
	Interval Duration `yaml:"interval" default:"30s" min:">0"`
}

// Writer says how rows are spread over part files.
type Writer struct {
	// Send all rows of a partition to one writer: fewer, larger part files, at
	// the price of a shuffle between readers and writers. Not in this build: it
	// has no effect, and a run says so.
	ShuffleByPartition bool `yaml:"shuffle_by_partition"`
}

// Rolling says when a part file is closed.
type Rolling struct {
	// Size at which a part file is closed.
	FileSize Bytes `yaml:"file_size" default:"128MB" min:">0"`
	// Rows at which a part file is closed; 0 is off.
	Rows int64 `yaml:"rows" min:"0"`
	// Age at which a part file is closed.
	RolloverInterval Duration `yaml:"rollover_interval" default:"30m" min:">0"`
	// A part file without new rows for this long is closed.
	InactivityInterval Duration `yaml:"inactivity_interval" default:"10m" min:">0"`
	// How often age and inactivity are looked at.
	CheckInterval Duration `yaml:"check_interval" default:"1m" min:">0"`
}

// Compaction says how small part files become published files.
type Compaction struct {
	// false is the same as policy off.
	Enabled bool `yaml:"enabled" default:"true"`
	// Size a published file is filled to.
	FileSize Bytes `yaml:"file_size" default:"128MB" min:">0"`
	// `hold` packs part files of many checkpoints, `checkpoint` those of each
	// checkpoint by itself, `off` publishes part files as they are.
	Policy string `yaml:"policy" default:"hold" enum:"hold|checkpoint|off"`
	// With policy hold: a row is held back for no longer than this.
	MaxDelay Duration `yaml:"max_delay" default:"5m" min:">0"`
	// With policy hold: and for no more checkpoints than this; 0 is no limit.
	MaxCheckpoints int `yaml:"max_checkpoints" min:"0"`
	// Units compacted at the same time.
	Parallelism int `yaml:"parallelism" default:"2" min:"1" max:"256"`
	// Bytes per second compaction reads at most, all workers together; 0 is no
	// limit.
	BytesPerSecond Bytes `yaml:"bytes_per_second" min:"0"`
}

// Commit says when and how a partition is announced.
type Commit struct {
	// `process-time`: a partition is complete some time after its first
	// publication. `partition-time`: when the watermark has passed the end of
	// its period; needs `source.event_time.column`.
	Trigger string `yaml:"trigger" default:"process-time" enum:"process-time|partition-time"`
	// Time added to the trigger; it counts only while the pipeline runs and is
	// caught up.
	Delay Duration `yaml:"delay" min:"0"`
	// What announcing does, in this order: `metastore`, `success-file`.
	// (`command` and `webhook` are not in this build.)
	Policies []string `yaml:"policies" default:"[metastore, success-file]"`
	// Name of the file that success-file writes; starts with `_` or `.`, so
	// that readers skip it.
	SuccessFile string `yaml:"success_file" default:"_SUCCESS"`
	// A row that comes after its partition's trigger: `append` publishes it and
	// announces again, `drop` counts it, `side` writes it to the table
	// `<name>_late`. drop and side need trigger partition-time.
	Late string `yaml:"late" default:"append" enum:"append|drop|side"`
	// When the metastore learns of a partition: when it is `complete`, or with
	// its `first-file`.
	Register string `yaml:"register" default:"complete" enum:"complete|first-file"`
	// With partition-time: takes a partition's time from its values, instead of
	// from the transforms.
	TimeExtractor *TimeExtractor `yaml:"time_extractor"`
}

// TimeExtractor takes the time of a partition from its values.
type TimeExtractor struct {
	// Text in which `$name` stands for the value of a partition column. Empty:
	// the value of the first.
	Pattern string `yaml:"pattern"`
	// Layout of that text, of yyyy MM dd HH mm ss SSS and quoted text. Empty:
	// `yyyy-M-d[ H:m:s[.fraction]]`.
	Formatter string `yaml:"formatter"`
}

// S3 is the object store of a table at s3://: AWS S3, or a store that is
// compatible with it and keeps conditional writes.
type S3 struct {
	// URL of the store, such as `https://minio.example.com:9000`. Empty: AWS.
	Endpoint string `yaml:"endpoint"`
	// Region of the bucket. Empty: as the AWS configuration of the user says
	// (AWS_REGION, profile), else us-east-1.
	Region string `yaml:"region"`
	// The bucket is the first element of the path, not a part of the host name:
	// what most stores but AWS want.
	PathStyle bool `yaml:"path_style"`
	// Access key id. Left out together with secret_key, the AWS credential
	// chain is asked: environment, profile, web identity, instance role.
	AccessKey Secret `yaml:"access_key"`
	// Secret access key.
	SecretKey Secret `yaml:"secret_key"`
	// Encryption of https, beyond the authorities of the system.
	TLS *TLS `yaml:"tls"`
	// How long making a connection may take.
	ConnectTimeout Duration `yaml:"connect_timeout" default:"10s" min:">0"`
	// How long one try of a request may take, with all it sends and receives.
	RequestTimeout Duration `yaml:"request_timeout" default:"2m" min:">0"`
	// How long a request that fails for a reason that may pass (no answer, slow
	// down, an error within the store) is tried again, with growing pauses. At
	// the start of a run it is 10 s at most.
	RetryFor Duration `yaml:"retry_for" default:"5m" min:">0"`
	// An object of more bytes is sent in parts of this size.
	PartSize Bytes `yaml:"part_size" default:"16MB" min:"5MB" max:"5GB"`
	// Parts of one object that are sent at the same time.
	Concurrency int `yaml:"concurrency" default:"4" min:"1" max:"64"`
}

// Metastore is the catalogue that learns of partitions.
type Metastore struct {
	// `embedded` keeps the catalogue with the table, `hive` is a Hive Metastore.
	Type string `yaml:"type" default:"embedded" enum:"embedded|hive"`
	// Addresses of the Hive Metastore, `thrift://host:port`, separated by
	// commas: tried in turn. Required for type hive.
	URI string `yaml:"uri"`
	// Create the table, its database, and the tables `<name>_dead` and
	// `<name>_late`, when the metastore does not have them. Without it the table
	// must be there, and side tables that are not there are not announced.
	CreateTable bool `yaml:"create_table"`
	// Add columns that the metastore's table lacks, and widen types (int to
	// bigint, float to double, a longer decimal, varchar or char). Without it
	// they must agree with `table.columns`.
	AlterTable bool `yaml:"alter_table"`
	// Where the metastore's readers find the table, when they do not call it by
	// `table.location`: such as `s3a://bucket/path` for `s3://bucket/path`.
	Location string `yaml:"location"`
	// How long a call may take. What takes longer is tried again.
	Timeout Duration `yaml:"timeout" default:"30s" min:">0"`
	// How long connecting may take, authentication included, for each address.
	ConnectTimeout Duration `yaml:"connect_timeout" default:"5s" min:">0"`
	// Partitions added, changed or read in one call at most.
	BatchSize int `yaml:"batch_size" default:"100" min:"1" max:"1000"`
	// Who announces. Left out, the metastore is not told (it must accept that:
	// NOSASL).
	SASL *MetastoreSASL `yaml:"sasl"`
	// Encrypt connections, and see who answers (`metastore.use.SSL`).
	TLS *TLS `yaml:"tls"`
}

// MetastoreSASL says who announces.
type MetastoreSASL struct {
	// PLAIN for a name and a password, GSSAPI for Kerberos.
	Mechanism string `yaml:"mechanism" default:"PLAIN" enum:"PLAIN|GSSAPI"`
	// Name of the user, for PLAIN.
	Username string `yaml:"username"`
	// Password of the user, for PLAIN.
	Password Secret `yaml:"password"`
	// Details of GSSAPI.
	Kerberos Kerberos `yaml:"kerberos"`
}

// Limits says what a process may use at most.
type Limits struct {
	// Memory for rows in part files and in compaction; the largest or oldest
	// is flushed when it is reached.
	Memory Bytes `yaml:"memory" default:"1GB" min:"16MB"`
	// Part files open at the same time.
	OpenFiles int `yaml:"open_files" default:"256" min:"4"`
	// Bytes of hidden files and of the spool; reading slows when it is reached.
	Staging Bytes `yaml:"staging" default:"20GB" min:">0"`
	// New partitions within one checkpoint; more stop the run, since a wrong
	// partition column makes them without end.
	NewPartitionsPerCheckpoint int `yaml:"new_partitions_per_checkpoint" default:"1000" min:"1"`
}

// HDFS says how a table on HDFS is reached.
type HDFS struct {
	// Name nodes, `host:port`, of an HA pair both. Left out: those that the
	// Hadoop configuration has for the location's name service, else the host
	// of the location (port 8020 unless it names one).
	NameNodes []string `yaml:"namenodes"`
	// User that acts without Kerberos. Left out: HADOOP_USER_NAME, else the user
	// of the process.
	User string `yaml:"user"`
	// Directory of core-site.xml and hdfs-site.xml. Left out: HADOOP_CONF_DIR,
	// else no Hadoop configuration is read.
	ConfDir string `yaml:"conf_dir"`
	// Kerberos login; a secure cluster needs it.
	Kerberos *Kerberos `yaml:"kerberos"`
	// How connections to data nodes are protected on a secure cluster. Left out:
	// the Hadoop configuration's dfs.data.transfer.protection. `none`: the data
	// nodes are on privileged ports, without SASL. `integrity`, and `privacy`
	// without the AES cipher suite, are refused at start-up: they cannot be read.
	DataTransferProtection string `yaml:"data_transfer_protection" enum:"|none|authentication|integrity|privacy"`
	// Copies of each block; 0 takes the Hadoop configuration's dfs.replication,
	// else the name node's default.
	Replication int `yaml:"replication" min:"0" max:"512"`
	// Size of a block; 0 takes dfs.blocksize, else the name node's default.
	BlockSize Bytes `yaml:"block_size" min:"0"`
	// Time to connect to a name node or data node.
	ConnectTimeout Duration `yaml:"connect_timeout" default:"10s" min:">0"`
	// Time that each read and write of a connection may take: a server that
	// hangs is given up after it.
	CallTimeout Duration `yaml:"call_timeout" default:"1m" min:">0"`
	// At start-up, time until a cluster that does not answer is an error.
	StartTimeout Duration `yaml:"start_timeout" default:"30s" min:">0"`
	// While running, time that an operation waits for a cluster that is down, in
	// safe mode or full, until it ends the run.
	RetryFor Duration `yaml:"retry_for" default:"1h" min:">0"`
}

// HTTP serves metrics, health and the status page.
type HTTP struct {
	// Address to listen on, `host:port`. Empty is off. Not in this build: it has
	// no effect, and a run says so.
	Listen string `yaml:"listen"`
}

func (s *Source) markFilled()  { s.filled = true }
func (k *Kafka) markFilled()   { k.filled = true }
func (d *Datagen) markFilled() { d.filled = true }

// Names of values, as written in the file.
const (
	PolicyHold       = "hold"       // Compaction.Policy
	PolicyCheckpoint = "checkpoint" // Compaction.Policy
	PolicyOff        = "off"        // Compaction.Policy

	TriggerProcessTime   = "process-time"   // Commit.Trigger
	TriggerPartitionTime = "partition-time" // Commit.Trigger

	CommitMetastore   = "metastore"    // Commit.Policies
	CommitSuccessFile = "success-file" // Commit.Policies

	LateAppend = "append" // Commit.Late
	LateDrop   = "drop"   // Commit.Late
	LateSide   = "side"   // Commit.Late

	RegisterComplete  = "complete"   // Commit.Register
	RegisterFirstFile = "first-file" // Commit.Register

	BadDeadLetter = "dead-letter" // BadRecords.Policy
	BadFail       = "fail"        // BadRecords.Policy
	BadDrop       = "drop"        // BadRecords.Policy

	AtEndComplete = "complete" // Source.AtEnd
	AtEndTriggers = "triggers" // Source.AtEnd

	OutOfRangeHalt     = "halt"     // Kafka.OffsetOutOfRange
	OutOfRangeEarliest = "earliest" // Kafka.OffsetOutOfRange
	OutOfRangeLatest   = "latest"   // Kafka.OffsetOutOfRange

	MechanismPlain    = "PLAIN"         // SASL.Mechanism
	MechanismScram256 = "SCRAM-SHA-256" // SASL.Mechanism
	MechanismScram512 = "SCRAM-SHA-512" // SASL.Mechanism
	MechanismGSSAPI   = "GSSAPI"        // SASL.Mechanism

	MetastoreEmbedded = "embedded" // Metastore.Type
	MetastoreHive     = "hive"     // Metastore.Type

	TimestampsInt96 = "int96" // TableParquet.Timestamps
	DecimalsFixed   = "fixed" // TableParquet.Decimals

	FormatJSON    = "json"    // Source.Format
	FormatCSV     = "csv"     // Source.Format
	FormatAvro    = "avro"    // Source.Format
	FormatRaw     = "raw"     // Source.Format
	FormatParquet = "parquet" // Source.Format
)
